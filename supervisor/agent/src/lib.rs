//! The agent: one agent's loop as a pure state machine, its prompt, and its conversation.
//!
//! Pure: no I/O, no clock and no randomness, so that every run can be replayed.

#![forbid(unsafe_code)]

pub mod conversation;
pub mod core;
pub mod prompt;
