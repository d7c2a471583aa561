//! Tests the tools from the model's calls to the results that it gets, with the kernel's decisions.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod denials;
mod grants;
mod surroundings;
mod turn;
