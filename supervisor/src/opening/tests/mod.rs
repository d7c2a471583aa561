//! Sessions that go on.

mod large_logs;
