use insta::assert_snapshot;
use ipc::id::EventId;
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};

use crate::seat::Seat;

fn full(free: u64) -> UiEventKind {
    UiEventKind::LogPaused { path: "/s/log.jsonl".into(), free: Some(free), last: EventId(12) }
}

#[test]
fn enter_tries_again_and_what_is_typed_stays() {
    let mut seat = Seat::new(80, 16);
    seat.core(full(2048));
    seat.keys("more");
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit
    ! paused: cannot write the log /s/log.jsonl: the disk is full (2 KiB free)
    · everything up to event 12 is saved; the agents are paused
      free some space: the session continues by itself, or Enter retries ·
      :q ends the session





    ────────────────────────────────────────────────────────────────────────────────
    › more
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    assert_eq!(seat.told(), []);
    seat.keys("\n");
    assert_eq!(seat.told(), [UserActionKind::RetryLog]);
    seat.core(full(0));
    assert!(seat.screen().contains("the disk is still full (0 KiB free)"), "{}", seat.screen());
    seat.core(UiEventKind::LogGoesOn);
    assert!(seat.screen().contains("the session continues, and nothing was lost"), "{}", seat.screen());
    seat.keys("\n");
    let [UserActionKind::Agent(AgentAction::Prompt { text, .. })] = &seat.told()[..] else {
        panic!("{}", seat.screen())
    };
    assert_eq!(text, "more");
}
