//! The supervisor: the only unconfined process.
//!
//! `app` is the command line; `driver` carries out what the pure `core` decides, by `provider` (the model), `monitor`
//! (the only module that spawns, reads and verifies confined processes) and `session` (the log). `gate`, `policy` and
//! `tools` are pure: what may be done, by whom, and what the model can ask for.

#![deny(unsafe_code)]

pub mod activity;
pub mod app;
pub mod approval;
mod bench;
pub mod changes;
pub mod config;
pub mod core;
pub mod demo;
mod directories;
mod doctor;
pub mod driver;
pub mod gate;
mod inside;
mod listed;
pub mod monitor;
pub mod policy;
pub mod prompt;
pub mod provider;
pub mod recording;
pub mod replay;
pub mod secrets;
pub mod session;
mod shell_word;
#[expect(unsafe_code, reason = "it exists for system calls")]
mod system;
pub mod tools;
pub mod tripwire;
