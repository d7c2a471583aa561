//! The tools through the whole stack: the model's calls, the kernel's decisions, and the model's results.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod denials;
mod grants;
mod surroundings;
mod turn;
