//! The mediator on real processes: what it denies, what keeps working, and that it is never outrun.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]

mod calls;
mod handed_in;
mod harness;
mod impostors;
mod messages;
mod network;
mod paths;
mod programs;
mod races;
mod signals;
