//! The tools through the whole stack: what the model asks for, what the kernel allows, what the model is told.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod denials;
mod grants;
mod surroundings;
mod turn;
