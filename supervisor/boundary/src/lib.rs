//! Starts every confined process, and computes the access of each.
//!
//! `policy` computes access from a project, a mode and flags. `monitor` starts and verifies processes. `install`
//! fetches packages of servers. `tripwire` restores files that the host would execute later.

#![deny(unsafe_code)]

pub mod install;
pub mod monitor;
pub mod policy;
pub mod system;
pub mod tripwire;
