//! Tests of the change set against the real git: git must produce exactly the tree that the session left.

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
