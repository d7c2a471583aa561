//! Hosts by name, from a command of an agent to the packets outside. The internet is a network namespace of the test,
//! which answers at every address and records all packets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

mod attacks;
mod fetch;
mod gateway;
mod ground;
mod guests;
mod reached;
mod sessions;
mod waiting;
