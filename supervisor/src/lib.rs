//! The supervisor: the only unconfined process.
//!
//! `app` is the command line, which starts one front end; `place` prepares a session's project and confinement, `opening`
//! opens the session; `driver` carries out what the pure `core` decides, by `provider` (the model), `monitor`
//! (the only module that spawns, reads and verifies confined processes) and `session` (the log). `gate`, `policy` and
//! `tools` are pure: what may be done, by whom, and what the model can ask for.

#![deny(unsafe_code)]

pub mod activity;
pub mod app;
pub mod approval;
mod args;
pub mod attempt;
mod audit;
mod batch;
mod bench;
pub mod changes;
pub mod checkpoints;
pub mod config;
pub mod core;
pub mod demo;
mod diagnostics;
mod directories;
mod doctor;
pub mod driver;
mod editor;
mod exec;
mod exit;
mod explain;
pub mod gate;
mod inside;
mod listed;
mod live;
mod messages;
mod modes;
pub mod monitor;
mod opening;
mod pager;
mod passing;
mod pictures;
mod place;
pub mod plan;
mod plans;
pub mod policy;
pub mod prompt;
mod protected;
pub mod provider;
pub mod recording;
mod redaction;
pub mod relay;
pub mod replay;
pub mod roles;
mod sandbox;
mod scratch;
pub mod secrets;
mod serve;
pub mod session;
mod sessions;
mod shell_word;
mod shown;
mod signals;
mod system;
mod terminal_ui;
pub mod tools;
pub mod tripwire;
mod tty;
