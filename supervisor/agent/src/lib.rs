//! The agent: one agent's loop as a pure state machine, its prompt, and the conversation that it leads.
//!
//! Pure: no I/O, no clock and no randomness. What comes in decides what goes out, so that every run can be replayed.

#![forbid(unsafe_code)]

pub mod conversation;
pub mod core;
pub mod prompt;
