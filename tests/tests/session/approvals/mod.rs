//! Tests approvals by a session's channels, with real workers in both tiers: approved actions happen once, others
//! never.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod asking;
mod bad_answers;
mod confinement;
mod external;
mod flow;
mod grants;
mod offers;
mod sockets;
mod whole_turn;

use tests::again;

#[test]
fn all_of_it_holds_for_another_first_agent() {
    again::with_another_first_agent(module_path!());
}

#[test]
fn all_of_it_holds_for_a_plain_user() {
    again::as_a_plain_user(module_path!());
}
