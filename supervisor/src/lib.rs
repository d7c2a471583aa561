//! The supervisor: the only unconfined process.
//!
//! Seven wings, each of which uses those before it: `process`, `journal`, `settings`, `engine`, `front`, `inspect`,
//! `command`. What may be done is decided below, in the crates `gate` and `agent`, which are pure; `boundary` alone
//! spawns, reads and verifies confined processes; `model` alone speaks to a model.

#![forbid(unsafe_code)]

pub mod command;
pub mod engine;
pub mod front;
pub mod inspect;
pub mod journal;
pub mod process;
pub mod settings;
