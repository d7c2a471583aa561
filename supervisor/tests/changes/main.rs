//! Tests that the real git applies a change set's patch to exactly the tree that the session left.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod compare;
mod git;
mod output;
mod round_trip;
mod tree;
