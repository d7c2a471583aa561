#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod arrivals;
mod carrying;
mod confined;
mod harness;
mod limits;
mod names;
mod namespace;
mod proxied;
mod questions;
