//! Starts every confined process, and determines the rights that each one gets.
//!
//! `policy` computes rights from a project, a mode and flags. `monitor` starts, reads and verifies confined processes.
//! `install` fetches the packages of servers that install themselves. `tripwire` restores files that the host would run later. This crate knows workers, but neither agents nor the model.

#![deny(unsafe_code)]

pub mod install;
pub mod monitor;
pub mod policy;
pub mod system;
pub mod tripwire;
