//! The boundary: everything that starts a confined process, and what it is started with.
//!
//! `policy` makes rights of a project, a mode and flags; `monitor` spawns, reads and verifies confined processes; `tripwire` puts back
//! what the host would run later. It knows workers, and neither agents nor the model.

#![deny(unsafe_code)]

pub mod monitor;
pub mod policy;
pub mod system;
pub mod tripwire;
