use ipc::id::EventId;
use protocol::event::{
    ChangeKind, ChangedFile, EventKind, FileDiff, LeftFile, NoticeCode, RewindPreview, RewindScope,
    RewindTarget, Rewound, TokenUsage, TurnFinished,
};
use protocol::frontend::{UiEventKind, UserActionKind};

use crate::core::logged_as;
use crate::seat::Seat;
use crate::text::finish_with;

fn logged(seat: &mut Seat, id: u64, kind: EventKind) {
    seat.core(logged_as(id, kind));
}

fn turn(seat: &mut Seat, id: u64, text: &str, reply: &str) {
    logged(seat, id, EventKind::UserMessage { text: text.to_owned(), images: vec![] });
    logged(seat, id, EventKind::ModelRequested { step: 1, attempt: 1 });
    seat.core(UiEventKind::TextDelta { text: reply.to_owned() });
    let finished = TurnFinished {
        reason: protocol::event::EndReason::Done,
        message: None,
        steps: 1,
        usage: TokenUsage::default(),
        cost_usd: None,
        duration_ms: 9,
    };
    logged(seat, id + 1, EventKind::TurnFinished(finished));
}

fn preview(target: RewindTarget) -> RewindPreview {
    let file = |path: &str, change| ChangedFile { path: path.into(), change };
    RewindPreview {
        target,
        only: vec![],
        files: vec![
            file("a\u{1b}[2Jb", ChangeKind::Added),
            file("new", ChangeKind::Deleted),
            file("src/main.rs", ChangeKind::Modified),
        ],
        left: vec![LeftFile {
            path: "mine".into(),
            reason: "changed by another program, not by the agents".to_owned(),
        }],
        messages: 1,
        notes: vec![],
        digest: "d".to_owned(),
    }
}

fn to(id: u64) -> RewindTarget {
    RewindTarget { to: Some(EventId(id)), scope: RewindScope::Both }
}

fn wanted(target: RewindTarget, digest: Option<&str>) -> [UserActionKind; 1] {
    [UserActionKind::Rewind { target, files: vec![], digest: digest.map(str::to_owned) }]
}

fn seat() -> Seat {
    let mut seat = Seat::new(72, 16);
    turn(&mut seat, 3, "first things", "alpha");
    turn(&mut seat, 7, "second things\nand more", "omega");
    seat
}

#[test]
fn a_message_is_chosen_its_consequences_shown_and_confirmed() {
    let mut seat = seat();
    seat.keys(":rewind\n");
    insta::assert_snapshot!(seat.screen(), @"
    restore the session to before a message
        1  11-29 17:03  first things
    ▸   2  11-29 17:07  second things









    Enter show what would change  u undo the last rewind  Esc close
    ────────────────────────────────────────────────────────────────────────
    ›
     REWIND  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    seat.keys("k\n");
    assert_eq!(seat.told(), wanted(to(3), None));
    // A rewind whose consequences are not shown cannot be confirmed.
    seat.slowly("y");
    assert!(seat.told().is_empty());
    seat.core(UiEventKind::RewindPreview(Box::new(preview(to(3)))));
    insta::assert_snapshot!(seat.screen(), @r"
    restore to before: first things
      remove from the conversation: your last message, and all that followed
      restore a\u{1b}[2Jb
      delete  new
      restore src/main.rs
    · not restored (changed by another program, not by the agents): mine
    · not changed: ignored files, git's own directory (commits stay), files
      above 2 MiB




    y restore  b both  f files  c conversation  Esc back
    ────────────────────────────────────────────────────────────────────────
    ›
     REWIND  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    let files = RewindTarget { scope: RewindScope::Files, ..to(3) };
    seat.slowly("f");
    assert_eq!(seat.told(), wanted(files, None));
    seat.core(UiEventKind::RewindPreview(Box::new(preview(files))));
    seat.slowly("y");
    assert_eq!(seat.told(), wanted(files, Some("d")));
}

#[test]
fn what_was_taken_back_is_gone_and_can_be_had_again() {
    let mut seat = seat();
    let done = Rewound { target: to(7), files: vec![], left: vec![], error: None };
    logged(&mut seat, 9, EventKind::Rewound(done.clone()));
    let screen = seat.screen();
    assert!(screen.contains("alpha") && !screen.contains("omega"), "{screen}");
    // The removed message is at the prompt, to be changed.
    assert!(screen.contains("› second things"), "{screen}");
    seat.ctrl('c');
    seat.keys(":rewind\n");
    seat.slowly("u");
    let undo = RewindTarget { to: None, scope: RewindScope::Both };
    assert_eq!(seat.told(), wanted(undo, None));
    logged(&mut seat, 10, EventKind::Rewound(Rewound { target: undo, ..done }));
    let screen = seat.screen();
    assert!(screen.contains("omega") && screen.contains("the last rewind is undone"), "{screen}");
    seat.keys(":rewind\n\n");
    assert_eq!(seat.told(), wanted(to(7), None));
    logged(
        &mut seat,
        11,
        EventKind::Notice {
            code: NoticeCode::RewindRefused,
            message: "nothing was restored: no room".to_owned(),
        },
    );
    assert!(seat.screen().contains("no room") && seat.screen().contains(" INSERT "), "{}", seat.screen());
}

#[test]
fn a_message_tells_its_time_its_changes_and_another_branch() {
    let mut seat = Seat::new(80, 14);
    seat.core(UiEventKind::Branch { name: Some("main".to_owned()) });
    turn(&mut seat, 3, "first things", "alpha");
    seat.core(UiEventKind::Branch { name: Some("topic".to_owned()) });
    turn(&mut seat, 7, "second things", "omega");
    for (call, path, old, new) in [(1, "a", Some("1\n"), "2\n3\n"), (2, "b", None, "4\n")] {
        let file = FileDiff {
            path: format!("/home/me/project/{path}").as_str().into(),
            first_line: Some(1),
            old_text: old.map(str::to_owned),
            new_text: new.to_owned(),
        };
        seat.call(call, "write_file", &serde_json::json!({"path": path, "content": new}));
        finish_with(&mut seat, call, vec![file]);
    }
    seat.keys(":rewind\n");
    let rows: Vec<_> = (1..3).map(|y| seat.row(y)).collect();
    insta::assert_snapshot!(rows.join("\n"), @"
        1  11-29 17:03                 first things · on branch main
    ▸   2  11-29 17:07  2 files +3 -1  second things
    ");
}

#[test]
fn while_an_agent_works_and_before_the_first_word_there_is_nothing_to_choose() {
    let mut seat = Seat::new(72, 16);
    seat.keys(":rewind\n");
    assert!(seat.screen().contains("there is no message to rewind to"), "{}", seat.screen());
    logged(&mut seat, 3, EventKind::UserMessage { text: "go".to_owned(), images: vec![] });
    seat.keys(":rewind\n");
    assert!(seat.screen().contains("an agent is working"), "{}", seat.screen());
}

#[test]
fn one_file_goes_back_to_where_the_session_began() {
    let mut seat = seat();
    seat.keys(":revert /home/me/project/src/main.rs\n");
    let target = RewindTarget { to: Some(EventId(3)), scope: RewindScope::Files };
    let files = vec![ipc::path::WirePath::from("src/main.rs")];
    let wanted = |digest: Option<&str>| {
        [UserActionKind::Rewind { target, files: files.clone(), digest: digest.map(str::to_owned) }]
    };
    assert_eq!(seat.told(), wanted(None));
    seat.core(UiEventKind::RewindPreview(Box::new(RewindPreview { only: files.clone(), ..preview(target) })));
    // Restoring a single file does not change the conversation.
    assert!(seat.screen().contains("\ny restore  Esc back\n"), "{}", seat.screen());
    seat.slowly("bc");
    assert!(seat.told().is_empty());
    seat.slowly("y");
    assert_eq!(seat.told(), wanted(Some("d")));
}
