//! Tests of the full tier: its namespaces, its file tree, and programs that must work in it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

#[path = "../common/mod.rs"]
mod common;
mod names;
mod network;
mod older;
mod processes;
mod project;
mod run;
mod tree;
