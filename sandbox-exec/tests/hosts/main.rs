#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

#[path = "../common/mod.rs"]
mod common;
mod floods;
mod floor;
mod gateway;
mod inside;
mod reached;
mod refused;
mod resolver;
mod starts;
