//! Tests of the mediator on real processes: denials, calls that keep working, and races.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod calls;
mod changes;
mod children;
mod fences;
mod granted;
mod handed_in;
mod harness;
mod impostors;
mod keys;
mod kill;
mod lifetimes;
mod machine;
mod made;
mod messages;
mod metadata;
mod metadata_programs;
mod metadata_races;
mod names;
mod network;
mod numbers;
mod paths;
mod programs;
mod questions;
mod raced;
mod races;
mod signals;
mod soak;
mod stops;
mod strangers;
mod stuck;
mod taken;
mod victims;
