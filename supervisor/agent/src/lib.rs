//! The agent: one agent's loop as a pure state machine, its prompt, and its conversation.
//!
//! There is no I/O, clock or randomness, so that every run can be replayed.

#![forbid(unsafe_code)]

pub mod conversation;
pub mod core;
pub mod prompt;
