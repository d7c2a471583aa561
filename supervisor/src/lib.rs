//! The supervisor: the only unconfined process.
//!
//! `app` is the command line, which starts one front end; `place` prepares a session's project and confinement, `opening`
//! opens the session; `driver` carries out what the pure `core` decides, by `provider` (the model), `monitor`
//! (the only module that spawns, reads and verifies confined processes) and `session` (the log). `gate`, `policy` and
//! `tools` are pure: what may be done, by whom, and what the model can ask for.

#![forbid(unsafe_code)]

pub mod app;
mod args;
pub mod attempt;
mod audit;
mod batch;
mod bench;
pub mod changes;
pub mod checkpoints;
pub mod config;
pub mod demo;
mod diagnostics;
mod directories;
mod doctor;
pub mod driver;
mod editor;
mod exec;
mod exit;
mod explain;
mod inside;
mod live;
mod messages;
mod opening;
mod pager;
mod passing;
mod pictures;
mod place;
mod plans;
mod sandbox;
mod scratch;
mod serve;
pub mod session;
mod sessions;
mod shown;
mod signals;
mod terminal_ui;
mod tty;

pub use ::model::{provider, recording, redaction, relay, replay, secrets};
pub use agent::{core, prompt};
pub use boundary::{monitor, policy, system, tripwire};
pub use gate::{self, activity, approval, listed, modes, plan, protected, roles, shell_word, tools};
