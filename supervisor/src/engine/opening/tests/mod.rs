//! Sessions that go on.

mod agent;
mod large_logs;
