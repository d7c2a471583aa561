//! Approvals through the session's channel alone, with real workers in both tiers: what was approved happens, exactly and
//! once, and nothing else does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod asking;
mod flow;
