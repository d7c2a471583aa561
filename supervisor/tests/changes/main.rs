//! The change set against the real git: what git applies must be the very tree that the session left.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod compare;
mod git;
mod output;
mod round_trip;
mod tree;
