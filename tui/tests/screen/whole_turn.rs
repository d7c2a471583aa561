//! Tests of allowing all requests of a turn: the request, the status during the turn, and the page at its end.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId, EventId};
use ipc::rights::Network;
use protocol::approval::{ApprovalAnswer, ReviewDecision, ServerRequest, TurnAccess};
use protocol::event::{
    ChangeKind, ChangedFile, EndReason, EventKind, FileDiff, RewindPreview, RewindScope, RewindTarget,
    Rewound, TokenUsage, ToolCallStatus, TurnAllowanceEnd, TurnAllowed, TurnFinished,
};
use protocol::frontend::{UiEventKind, UserActionKind};

use crate::core::{denied, exec, logged_as, patch, read_only, update};
use crate::seat::Seat;

pub(crate) fn access() -> TurnAccess {
    TurnAccess {
        write: vec!["/home/me/project".into(), "/home/me/.cache/bw/1".into()],
        rights: read_only().into(),
        network_after: Network::On,
        confirms_commands: false,
    }
}

fn asked(seat: &mut Seat) {
    let mut request = exec("cargo test");
    request.turn = Some(access());
    seat.ask(1, ServerRequest::ExecCommandApproval(request));
    seat.wait(400);
}

#[test]
fn the_card_says_what_the_turn_may_do_and_a_second_key_gives_it() {
    let mut seat = Seat::new(80, 24);
    asked(&mut seat);
    assert!(seat.screen().contains("t this whole turn…"), "{}", seat.screen());
    seat.keys("t");
    seat.wait(400);
    assert!(seat.told().is_empty(), "the first key only shows it");
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit







     Run this command? ─────────────────────────────────────────────────────────────
    yes to everything in this turn that needs no more than this:
      allows    write in this project
                write /home/me/.cache/bw/1
                run commands with that access
      network   off until the turn ends, then on again
      asks      before all else: the network, other paths, files your programs run
      lasts     until the turn ends in any way; :mode ask ends this access earlier
      then      you see all changes, and keep or undo them
    y yes, to everything in this turn  Esc back
    ── waiting for your answer ─────────────────────────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.keys("y");
    let [UserActionKind::Answer { id: ApprovalId(1), answer: ApprovalAnswer::Exec(answer) }] =
        &seat.told()[..]
    else {
        panic!("an answer");
    };
    assert_eq!((&answer.decision, answer.digest.as_deref()), (&ReviewDecision::ApprovedForTurn, Some("d1")));
}

#[test]
fn leaving_the_page_answers_nothing() {
    let mut seat = Seat::new(80, 24);
    asked(&mut seat);
    seat.keys("t");
    seat.wait(400);
    seat.keys("n");
    assert!(seat.told().is_empty() && seat.screen().contains("t this whole turn…"), "{}", seat.screen());
}

#[test]
fn a_card_that_the_turn_would_not_answer_does_not_offer_it() {
    let requests = [
        ServerRequest::ExecCommandApproval(exec("cargo test")),
        ServerRequest::ApplyPatchApproval(patch(&[("/home/me/project/a", update("@@ -1 +1 @@\n-a\n+b\n"))])),
        ServerRequest::DeniedCommandApproval(denied("touch /etc/probe")),
    ];
    for request in requests {
        let mut seat = Seat::new(80, 24);
        seat.ask(1, request);
        seat.wait(400);
        let before = seat.screen();
        seat.keys("t");
        seat.wait(400);
        assert!(!before.contains("whole turn"), "{before}");
        assert_eq!(seat.screen(), before);
        seat.keys("y");
        assert!(!format!("{:?}", seat.told()).contains("ApprovedForTurn"));
    }
}

fn finished() -> EventKind {
    EventKind::TurnFinished(TurnFinished {
        reason: EndReason::Done,
        message: None,
        steps: 1,
        usage: TokenUsage::default(),
        cost_usd: None,
        duration_ms: 9,
    })
}

fn change(seat: &mut Seat) {
    let diff = FileDiff {
        path: "/home/me/project/src/lib.rs".into(),
        old_text: Some("one\ntwo\n".to_owned()),
        new_text: "one\nTWO\nthree\n".to_owned(),
        first_line: Some(1),
    };
    seat.core(logged_as(
        5,
        EventKind::ToolCallFinished {
            call: CallId(7),
            tool_use: "a".into(),
            status: ToolCallStatus::Completed,
            content: "ok".to_owned(),
            explanation_bytes: None,
            duration_ms: 1,
            diffs: vec![diff],
            diffs_left_out: false,
            images: vec![],
        },
    ));
}

fn allowed(seat: &mut Seat) {
    seat.core(logged_as(2, EventKind::UserMessage { text: "earlier".to_owned(), images: vec![] }));
    seat.core(logged_as(2, finished()));
    seat.core(logged_as(3, EventKind::UserMessage { text: "go".to_owned(), images: vec![] }));
    seat.core(logged_as(4, EventKind::TurnAllowed(TurnAllowed { call: CallId(7), access: access() })));
    let input = serde_json::value::RawValue::from_string("{\"path\":\"src/lib.rs\"}".to_owned()).unwrap();
    seat.core(logged_as(
        4,
        EventKind::ToolCallStarted {
            call: CallId(7),
            tool_use: "a".into(),
            name: "edit_file".to_owned(),
            kind: protocol::event::ToolKind::Edit,
            locations: vec![],
            input,
        },
    ));
    change(seat);
}

fn target() -> RewindTarget {
    RewindTarget { to: Some(EventId(3)), scope: RewindScope::Files }
}

fn over(seat: &mut Seat) {
    seat.core(logged_as(6, finished()));
    seat.core(logged_as(7, EventKind::TurnAllowanceEnded { cause: TurnAllowanceEnd::TurnEnded }));
}

fn preview(files: Vec<ChangedFile>) -> UiEventKind {
    UiEventKind::RewindPreview(Box::new(RewindPreview {
        target: target(),
        only: vec![],
        files,
        left: vec![],
        messages: 0,
        notes: vec![],
        digest: "d".to_owned(),
    }))
}

fn modified() -> Vec<ChangedFile> {
    vec![ChangedFile { path: "src/lib.rs".into(), change: ChangeKind::Modified }]
}

#[test]
fn the_status_row_says_so_while_the_turn_runs() {
    let mut seat = Seat::new(80, 24);
    allowed(&mut seat);
    assert!(seat.screen().contains("EXECUTE · turn allowed · net"), "{}", seat.screen());
    over(&mut seat);
    assert!(seat.screen().contains("EXECUTE · ask · net"), "{}", seat.screen());
}

#[test]
fn at_its_end_all_changes_are_shown_and_undone_or_kept() {
    let mut seat = Seat::new(80, 24);
    allowed(&mut seat);
    over(&mut seat);
    assert_eq!(seat.told(), [UserActionKind::Rewind { target: target(), files: vec![], digest: None }]);
    seat.core(preview(modified()));
    assert_snapshot!(seat.screen(), @"
    the turn that you allowed is over: 1 file +2 -1 · undo all of it?
      undoing it would:
      restore src/lib.rs
    · not changed: ignored files, git's own directory (commits stay), files above 2
      MiB
    src/lib.rs +2 -1
    · call 7: edit
    │ 1  one
    │ 2 -two
    │ 2 +TWO
    │ 3 +three









    y undo the whole turn  Esc keep the changes
    ────────────────────────────────────────────────────── 1 file · +2 -1 · :diff ──
    ›
     REWIND  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.slowly("y");
    let digest = Some("d".to_owned());
    assert_eq!(seat.told(), [UserActionKind::Rewind { target: target(), files: vec![], digest }]);
    let rewound = Rewound { target: target(), files: modified(), left: vec![], error: None };
    seat.core(logged_as(9, EventKind::Rewound(rewound)));
    assert!(
        seat.screen().contains("the turn is undone: files restored to before it · 1 file"),
        "{}",
        seat.screen()
    );
    // In another session, the changes of the turn are kept.
    let mut seat = Seat::new(80, 24);
    allowed(&mut seat);
    over(&mut seat);
    seat.core(preview(modified()));
    seat.told();
    seat.press(KeyCode::Esc);
    assert!(seat.told().is_empty() && !seat.screen().contains("undo"), "{}", seat.screen());
}

#[test]
fn words_that_are_typed_when_it_opens_undo_nothing() {
    let mut seat = Seat::new(80, 24);
    allowed(&mut seat);
    over(&mut seat);
    seat.core(preview(modified()));
    seat.told();
    seat.keys("yes, and now the tests");
    seat.wait(900);
    assert!(seat.told().is_empty());
    assert!(seat.screen().contains("› yes, and now the tests"), "{}", seat.screen());
}

#[test]
fn a_turn_that_changed_nothing_asks_nothing_and_one_that_was_not_allowed_neither() {
    let mut seat = Seat::new(80, 24);
    allowed(&mut seat);
    over(&mut seat);
    seat.core(preview(vec![]));
    assert!(
        seat.screen().contains("changed no file") && !seat.screen().contains("undo"),
        "{}",
        seat.screen()
    );
    seat.told();
    seat.core(logged_as(8, EventKind::UserMessage { text: "more".to_owned(), images: vec![] }));
    seat.core(logged_as(9, finished()));
    assert!(seat.told().is_empty());
}
