//! Tests of changed files: their number above the prompt, and the page that shows the changes.

use insta::assert_snapshot;
use ipc::id::{AgentCall, AgentId, CallId, EventId};
use protocol::event::{
    ChangeKind, ChangedFile, EventKind, FileDiff, FilesChanged, Ignored, RewindScope, RewindTarget, Rewound,
    SeenChange, SeenContent, ToolCallStatus,
};

use crate::core::logged_as;
use crate::plans::executing;
use crate::seat::Seat;
use crate::text::finish_with;

fn change(seat: &mut Seat, call: u64, path: &str, old: Option<&str>, new: &str) {
    let file = FileDiff {
        path: path.into(),
        first_line: Some(1),
        old_text: old.map(str::to_owned),
        new_text: new.to_owned(),
    };
    seat.call(call, "write_file", &serde_json::json!({"path": path, "content": new}));
    finish_with(seat, call, vec![file]);
}

fn too_large(seat: &mut Seat, call: u64) {
    seat.call(call, "write_file", &serde_json::json!({"path": "big", "content": "x"}));
    seat.log(EventKind::ToolCallFinished {
        call: CallId(call),
        tool_use: "t".into(),
        status: ToolCallStatus::Completed,
        content: "done".to_owned(),
        explanation_bytes: None,
        duration_ms: 12,
        diffs: vec![],
        diffs_left_out: true,
        images: vec![],
    });
}

fn counted(seat: &Seat) -> String {
    let screen = seat.screen();
    let rule = screen.lines().find(|row| row.contains(" · :diff ─"));
    rule.and_then(|row| row.rsplit_once("─ "))
        .map_or_else(String::new, |(_, row)| row.trim_end_matches('─').to_owned())
}

fn work(seat: &mut Seat) {
    change(seat, 1, "/home/me/project/src/parse.rs", Some("a\nb\nc\n"), "a\nB\nc\n");
    change(seat, 2, "/home/me/project/tests/parse.rs", None, "1\n2\n3\n");
    change(seat, 3, "/home/me/project/src/parse.rs", Some("a\nB\nc\n"), "a\nb\nc\nd\n");
}

#[test]
fn the_line_above_the_prompt_counts_the_changed_files_at_its_right_end() {
    for (size, ends) in [((40, 10), "── 2 files · +4 · :diff ──"), ((110, 16), "── 2 files · +4 · :diff ──")]
    {
        let mut seat = Seat::new(size.0, size.1);
        work(&mut seat);
        let screen = seat.screen();
        assert!(screen.lines().any(|row| row.ends_with(ends)), "{screen}");
    }
    let mut seat = executing(140, 30);
    work(&mut seat);
    assert_eq!(counted(&seat), "2 files · +4 · :diff ");
}

#[test]
fn words_for_what_happens_stand_before_the_changed_files_and_take_their_place_where_it_is_narrow() {
    for (width, has_both) in [(80, true), (40, false)] {
        let mut seat = Seat::new(width, 16);
        work(&mut seat);
        seat.keys("go\n");
        seat.stream("Once");
        let screen = seat.screen();
        let rule = screen.lines().find(|row| row.starts_with("── answering")).unwrap();
        assert_eq!(rule.contains("2 files · +4"), has_both, "{rule}");
    }
}

#[test]
fn the_line_after_the_end_sums_the_session_up() {
    let mut seat = Seat::new(80, 24);
    assert_eq!(seat.model.farewell(), "Ended · 1 s");
    assert!(!seat.model.has_messages());
    seat.log(EventKind::UserMessage { text: "go".to_owned(), images: vec![] });
    work(&mut seat);
    seat.log(crate::core::denial());
    seat.log(crate::core::denial());
    crate::tree::log(&mut seat, "1.1", crate::core::denial());
    seat.log(crate::copy::reply("Yes."));
    seat.end_turn(protocol::event::EndReason::Done);
    seat.wait(725_000);
    let line = "Ended · 12 min · 2 files · +4 · $0.032 · 2 things were blocked (bailiwick audit)";
    assert_eq!(seat.model.farewell(), line);
    assert!(seat.model.has_messages());
    seat.wait(4_000_000);
    assert!(seat.model.farewell().starts_with("Ended · 1 h 18 min · "), "{}", seat.model.farewell());
}

#[test]
fn calls_with_unknown_changes_are_counted() {
    let mut seat = Seat::new(100, 16);
    for n in 1..20 {
        let path = format!("/home/me/project/a/long/way/down/to/the/file/{n:02}.rs");
        change(&mut seat, n, &path, None, "1\n2\n");
    }
    change(&mut seat, 20, "/srv/\x1b[2J\u{202e}漢字", None, "1\n");
    assert_eq!(counted(&seat), "20 files · +39 · :diff ");
    too_large(&mut seat, 21);
    assert_eq!(counted(&seat), "20 files · +39 · not counted: 1 call · :diff ");
}

#[test]
fn a_rewind_takes_back_later_changes_alone_and_its_undoing_brings_them_again() {
    let said = |seat: &mut Seat, id| {
        let kind = EventKind::UserMessage { text: "go on".to_owned(), images: vec![] };
        seat.core(logged_as(id, kind));
    };
    let path = "/home/me/project/src/parse.rs";
    let mut seat = Seat::new(110, 16);
    said(&mut seat, 100);
    change(&mut seat, 1, path, None, "1\n");
    said(&mut seat, 101);
    change(&mut seat, 2, path, Some("1\n"), "1\n2\n3\n");
    change(&mut seat, 3, "/home/me/project/new", None, "1\n");
    let before = counted(&seat);
    assert_eq!(before, "2 files · +4 · :diff ");
    let file = |path: &str| ChangedFile { path: path.into(), change: ChangeKind::Modified };
    let files = vec![file("src/parse.rs"), file("new")];
    let target = RewindTarget { to: Some(EventId(101)), scope: RewindScope::Files };
    let done = Rewound { target, files, left: vec![], error: None };
    seat.core(logged_as(102, EventKind::Rewound(done.clone())));
    assert_eq!(counted(&seat), "1 file · +1 · :diff ");
    let undone = Rewound { target: RewindTarget { to: None, ..target }, ..done };
    seat.core(logged_as(103, EventKind::Rewound(undone)));
    assert_eq!(counted(&seat), before);
}

#[test]
fn a_worker_that_tells_lines_beyond_all_files_breaks_no_screen() {
    for first_line in [0, u64::MAX - 1, u64::MAX] {
        for size in [(200, 60), (80, 24), (40, 10), (20, 6)] {
            let mut seat = Seat::new(size.0, size.1);
            let long = "a wide line of text, 漢字, \u{1b}[2J\n".repeat(40);
            let (old_text, new_text) = (Some(long.clone()), long.replace("wide", "long"));
            let file =
                FileDiff { path: "/etc/\u{1b}[2J".into(), first_line: Some(first_line), old_text, new_text };
            seat.call(
                1,
                "edit_file",
                &serde_json::json!({"path": "a", "old_string": "a", "new_string": "b"}),
            );
            finish_with(&mut seat, 1, vec![file.clone(), FileDiff { old_text: None, ..file }]);
            seat.keys("/diff\n");
            seat.keys("/diff steps\n");
            assert!(!seat.screen().contains('\u{1b}'), "{size:?}");
        }
    }
}

/// A change that was found by comparing snapshots of the project.
fn seen(path: &str, change: ChangeKind, texts: Option<(Option<&str>, &str)>, by: &[u64]) -> SeenChange {
    let by = by.iter().map(|call| AgentCall { agent: AgentId::root(), call: CallId(*call) });
    let diff = texts.map(|(old, new)| FileDiff {
        path: format!("/home/me/project/{path}").as_str().into(),
        first_line: Some(1),
        old_text: old.map(str::to_owned),
        new_text: new.to_owned(),
    });
    let content = SeenContent::Text;
    SeenChange {
        path: path.into(),
        change,
        by: by.collect(),
        content,
        modes: None,
        added: 0,
        removed: 0,
        diff,
    }
}

fn looked(seat: &mut Seat, files: Vec<SeenChange>) {
    seat.log(EventKind::FilesChanged(FilesChanged { files, ..FilesChanged::default() }));
}

fn command(seat: &mut Seat, call: u64, command: &str) {
    seat.call(call, "shell_exec", &serde_json::json!({"command": command}));
    seat.finish(call, ToolCallStatus::Completed, "[exit code 0, 3 ms]");
}

#[test]
fn what_commands_did_shows_with_the_command() {
    let mut seat = Seat::new(110, 40);
    change(&mut seat, 1, "/home/me/project/src/parse.rs", Some("a\n"), "b\n");
    command(&mut seat, 2, "cargo fmt && make all");
    let binary =
        SeenChange { content: SeenContent::Binary, ..seen("bytes.bin", ChangeKind::Added, None, &[2]) };
    let mode =
        SeenChange { modes: Some([0o644, 0o755]), ..seen("tool.sh", ChangeKind::Modified, None, &[2]) };
    let link = SeenChange {
        content: SeenContent::Link,
        ..seen("link", ChangeKind::Added, Some((None, "tool.sh")), &[2])
    };
    let files = vec![
        binary,
        seen("gone.txt", ChangeKind::Deleted, Some((Some("1\n2\n"), "")), &[2]),
        link,
        seen("made.txt", ChangeKind::Added, Some((None, "fresh\n")), &[2]),
        seen("moved.txt", ChangeKind::RenamedFrom("there.txt".into()), None, &[2]),
        seen("notes.txt", ChangeKind::Modified, Some((Some("x\n"), "y\n")), &[]),
        seen("src/parse.rs", ChangeKind::Modified, Some((Some("b\n"), "b\nc\n")), &[2]),
        mode,
    ];
    let ignored = Ignored { count: 2, first: vec!["target".into(), ".env".into()] };
    seat.log(EventKind::FilesChanged(FilesChanged { files, more: 0, cut_off: false, ignored }));
    seat.keys("/diff\n");
    assert_snapshot!(seat.screen(), @r#"
    bytes.bin binary · new
    · call 2: run cargo fmt && make all
    gone.txt -2 · deleted
    · call 2: run cargo fmt && make all
    │ 1 -1
    │ 2 -2
    link +1 · link · new
    · call 2: run cargo fmt && make all
    │ 1 +tool.sh
    │    \ no line end at the end of the file
    made.txt +1 · new
    · call 2: run cargo fmt && make all
    │ 1 +fresh
    moved.txt renamed from there.txt
    · call 2: run cargo fmt && make all
    notes.txt +1 -1
    · by you or another program
    │ 1 -x
    │ 1 +y
    src/parse.rs +2 -1
    · call 1: write; call 2: run cargo fmt && make all
    │ 1 -a
    │ 1 +b
    │ 2 +c
    tool.sh mode 644 → 755
    · call 2: run cargo fmt && make all
    · 2 paths that git ignores are not shown: "target", ".env"









    Esc close  j/k scroll
    ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    "#);
}

#[test]
fn what_came_and_went_is_no_change_and_a_move_takes_its_changes_along() {
    let mut seat = Seat::new(110, 30);
    change(&mut seat, 1, "/home/me/project/script", None, "x\n");
    change(&mut seat, 2, "/home/me/project/a", Some("1\n"), "1\n2\n");
    assert_eq!(counted(&seat), "2 files · +2 · :diff ");
    command(&mut seat, 3, "rm script; mv a b; mv a.bak a");
    looked(&mut seat, vec![seen("script", ChangeKind::Deleted, Some((Some("x\n"), "")), &[3])]);
    looked(&mut seat, vec![seen("b", ChangeKind::RenamedFrom("a".into()), None, &[3])]);
    assert_eq!(counted(&seat), "1 file · +1 · :diff ");
    looked(&mut seat, vec![seen("b", ChangeKind::Modified, Some((Some("1\n2\n"), "1\n")), &[])]);
    assert_eq!(counted(&seat), "1 file · ±0 · :diff ");
    seat.keys("/diff\n");
    let screen = seat.screen();
    assert!(screen.contains("b renamed from a") && screen.contains("by you or another program"), "{screen}");
    assert!(!screen.lines().any(|row| row.starts_with("script")), "{screen}");
}

#[test]
fn a_change_that_a_tool_did_not_tell_is_known_once_a_look_names_its_call() {
    let mut seat = Seat::new(110, 20);
    too_large(&mut seat, 1);
    assert_eq!(counted(&seat), "not counted: 1 call · :diff ");
    looked(&mut seat, vec![SeenChange { added: 70_000, ..seen("big", ChangeKind::Added, None, &[1]) }]);
    assert_eq!(counted(&seat), "1 file · +70000 · :diff ");
}

#[test]
fn names_in_what_a_look_tells_are_sanitised() {
    for size in [(200, 60), (80, 24), (40, 10)] {
        let mut seat = Seat::new(size.0, size.1);
        command(&mut seat, 1, "x\u{1b}[2J\u{202e}");
        let evil = "a\u{1b}[2J\u{202e}\nb";
        let link = seen(evil, ChangeKind::RenamedFrom(evil.into()), Some((Some(evil), evil)), &[1]);
        looked(
            &mut seat,
            vec![SeenChange { content: SeenContent::Link, added: u64::MAX, removed: u64::MAX, ..link }],
        );
        let ignored = Ignored { count: u64::MAX, first: vec![evil.into()] };
        let more = FilesChanged { more: u64::MAX, ignored, ..FilesChanged::default() };
        seat.log(EventKind::FilesChanged(more.clone()));
        seat.log(EventKind::FilesChanged(more));
        for keys in ["/diff\n", "/diff steps\n"] {
            seat.keys(keys);
            assert!(!seat.screen().contains('\u{1b}') && !seat.screen().contains('\u{202e}'), "{size:?}");
        }
    }
}
