//! The mediator on real processes: what it denies, what keeps working, and that it is never outrun.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]

#[allow(dead_code, reason = "control and internet are for the next commit")]
mod calls;
mod harness;
mod paths;
