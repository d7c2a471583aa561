//! `:review`: a turn that only reads, without the network.

use protocol::event::EndReason;
use protocol::frontend::{AgentAction, UserActionKind};

use crate::seat::Seat;

/// The messages that were sent, and true for each whose turn only reads and has no network.
fn sent(seat: &mut Seat) -> Vec<(String, bool)> {
    let message = |kind| match kind {
        UserActionKind::Agent(AgentAction::PromptReading { text, offline, .. }) => Some((text, offline)),
        UserActionKind::Agent(AgentAction::Prompt { text, .. }) => Some((text, false)),
        _ => None,
    };
    seat.told().into_iter().filter_map(message).collect()
}

#[test]
fn a_review_is_sent_at_once_and_reads_without_the_network() {
    let mut seat = Seat::new(100, 24);
    seat.keys("/rev");
    assert!(seat.screen().contains("/review BRANCH|COMMIT"), "{}", seat.screen());
    seat.keys("iew\n");
    let told = sent(&mut seat);
    assert!(told.len() == 1 && told[0].1 && told[0].0.contains("`git diff --no-ext-diff HEAD`"), "{told:?}");
    seat.end_turn(EndReason::Done);
    seat.keys("thanks\n");
    assert_eq!(sent(&mut seat), [("thanks".to_owned(), false)]);
    seat.end_turn(EndReason::Done);
    seat.keys("/review origin/main\n");
    let told = sent(&mut seat);
    assert!(told[0].1 && told[0].0.contains("git merge-base origin/main HEAD"), "{told:?}");
}

#[test]
fn a_name_that_a_shell_would_read_otherwise_is_refused() {
    let mut seat = Seat::new(100, 24);
    for name in ["-x", "$(id)", "a;id", "a`id`", "a b"] {
        seat.keys(&format!("/review {name}\n"));
        assert!(sent(&mut seat).is_empty(), "{name}");
        assert!(seat.screen().contains("expected the name of one branch or commit"), "{}", seat.screen());
    }
}

#[test]
fn a_review_waits_for_the_turn_that_runs() {
    let mut seat = Seat::new(100, 24);
    seat.keys("go\n");
    assert_eq!(sent(&mut seat).len(), 1);
    seat.keys("/review\n");
    assert!(sent(&mut seat).is_empty());
    seat.end_turn(EndReason::Done);
    let told = sent(&mut seat);
    assert!(told.len() == 1 && told[0].1, "{told:?}");
}
