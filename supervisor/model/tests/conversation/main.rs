//! Tests of long conversations with the real agent core and the real serialisation of requests.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod any_log;
mod cache;
mod caching;
mod driver;
mod history;
mod interrupted;
mod interrupted_requests;
mod plan;
mod rules;
mod sdk;
#[path = "../../../../tests/src/strict.rs"]
#[expect(unreachable_pub, reason = "the tests of the programs share it")]
mod strict;
mod writer;
