//! Tests attacks of a model's commands on files that the host executes later. The attacks are judged by a person's
//! later work in the project. In the floor tier only the tripwire protects the files. In the full tier existing files
//! are mounted read-only, and the tripwire covers missing ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
pub(crate) mod attack;
mod bounds;
mod configuration;
mod everyday;
mod operations;
mod paused;
mod planted;
mod promisor;
mod room;
mod roots;
mod settings;
mod unread;
mod worktrees;
