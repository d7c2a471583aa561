//! Shared code of the tests with several processes. Each test has a separate environment, in which the real programs
//! run.
//!
//! A test does not use the machine's configuration: its home, state and project are new directories, and its model is a
//! script on the loopback interface.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a harness of tests fails by panicking, and says aloud what it skips"
)]

pub mod again;
pub mod editor;
pub mod guests;
pub mod outer;
pub mod probe;
pub mod process;
pub mod programs;
pub mod random;
pub mod replies;
pub mod repository;
pub mod runs;
pub mod served;
pub mod session;
pub mod side_by_side;
pub mod silent_port;
pub mod standing;
pub mod strict;
pub mod svg;
pub mod tier;
pub mod trust;
pub mod ui;
pub mod world;

pub use process::{Finished, alive, marked, wait_until, without_durations};
pub use programs::{PLAIN_USER, Programs, User};
pub use world::World;

/// True in `just soak`, which plays whole matrices and long storms. CI plays a part of each.
pub fn soaks() -> bool {
    std::env::var_os("BAILIWICK_SOAK_S").is_some()
}

/// Skips a test, and prints the reason. CI compares these messages with a list.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        eprintln!("skipped: {}", format_args!($($why)*));
        return;
    }};
}
