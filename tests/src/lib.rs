//! What the tests across processes share: a world of its own for each test, and the real programs in it.
//!
//! Nothing of the machine's own configuration reaches a test: its home, its state and its project are fresh directories,
//! and its model is a script on loopback.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a harness of tests fails by panicking, and says aloud what it skips"
)]

pub mod again;
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

/// Says that a test cannot run, aloud: CI compares these lines with a list.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        eprintln!("skipped: {}", format_args!($($why)*));
        return;
    }};
}
