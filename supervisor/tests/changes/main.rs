//! The change set against the real git: what git applies must be the very tree that the session left.

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
