//! Tests of MCP servers and their guests: the protocol, hostile servers, and confinement.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "modules of one test")]

mod confined;
mod content;
mod harness;
mod hostile;
mod installed;
mod named;
mod parts;
mod plants;
mod prompts;
mod questions;
mod runs;
mod serving;
mod sessions;
mod terminal;
