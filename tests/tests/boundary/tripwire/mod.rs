//! What the host runs later, attacked by commands of a model: judged from the side of a person who works in the project
//! afterwards. In the floor tier the tripwire alone holds it; in the full tier what exists is mounted read-only in its place,
//! and the tripwire holds what does not exist yet.

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
