//! Tests access to hosts by name, from an agent's command to the packets that leave the machine. The internet is a
//! network namespace in which every address answers and all packets are recorded.

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
