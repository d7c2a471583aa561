//! Starts every confined process, and computes the access of each.
//!
//! `policy` computes access from a project, a mode and flags. `monitor` starts and verifies processes. `install`
//! installs packages of MCP servers. `tripwire` restores files that are executed later outside of the sandbox.

#![deny(unsafe_code)]

pub mod install;
pub mod monitor;
pub mod policy;
pub mod system;
pub mod tripwire;
