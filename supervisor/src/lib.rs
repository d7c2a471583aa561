//! The supervisor: the only unconfined process.
//!
//! Seven modules, each of which uses those before it: `process`, `journal`, `settings`, `engine`, `front`, `inspect`,
//! `command`. Policy is decided in the crates `gate` and `agent`, which do no input or output. Only `boundary` spawns
//! confined processes and reads their output; only `model` speaks to a model.

#![forbid(unsafe_code)]

pub mod command;
pub mod engine;
pub mod front;
pub mod inspect;
pub mod journal;
pub mod process;
pub mod settings;
