//! The changed files beside the transcript, with the lines that each has more and less.

use insta::assert_snapshot;
use ipc::event::{
    ChangeKind, ChangedFile, EventKind, FileDiff, RewindScope, RewindTarget, Rewound, ToolCallStatus,
};
use ipc::id::{CallId, EventId};

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

/// The lines beside the transcript.
fn beside(seat: &Seat) -> String {
    let of_row = |row: &str| row.rsplit_once('│').map(|(_, text)| text.to_owned());
    let rows: Vec<_> = seat.screen().lines().filter_map(of_row).collect();
    rows.join("\n")
}

fn work(seat: &mut Seat) {
    change(seat, 1, "/home/me/project/src/parse.rs", Some("a\nb\nc\n"), "a\nB\nc\n");
    change(seat, 2, "/home/me/project/tests/parse.rs", None, "1\n2\n3\n");
    change(seat, 3, "/home/me/project/src/parse.rs", Some("a\nB\nc\n"), "a\nb\nc\nd\n");
}

#[test]
fn the_changed_files_stand_below_the_agents() {
    let mut seat = Seat::new(110, 16);
    work(&mut seat);
    assert_snapshot!(beside(&seat), @"
    agents · Alt+A walks
    ▸ 1 the agent you talk to
        at rest
        read-only · ↑0 ↓0





    changed · 2 files · +4
    src/parse.rs +1
    tests/parse.rs +3
    ");
}

#[test]
fn with_a_plan_each_part_has_its_rows() {
    let mut seat = executing(200, 60);
    work(&mut seat);
    let rows = beside(&seat);
    let [agents, plan, changed] = ["agents", "plan ·", "changed ·"].map(|word| rows.find(word).unwrap());
    assert!(agents < plan && plan < changed, "{rows}");
    let mut seat = executing(110, 20);
    work(&mut seat);
    assert_snapshot!(beside(&seat), @"
    agents · 3 at work · Alt+A walks
    ▸ 1 the agent you talk to
        working 10 s
        read-only · ↑0 ↓0
        1.1 plan · plan it
          waiting 10 s
          read-only · ↑0 ↓0
        1.2 Fix the parser
          waiting 10 s
          writes the project · ↑0 ↓0
    plan · 1 of 2 done
    ✓ 1 completed 3 s · Reproduce it
    ▸ 2 running 7 s · Mend the lexer
    changed · 2 files · +4
    src/parse.rs +1
    tests/parse.rs +3
    ");
}

#[test]
fn of_many_files_the_number_of_those_that_do_not_show_does() {
    let mut seat = Seat::new(100, 16);
    for n in 1..20 {
        change(
            &mut seat,
            n,
            &format!("/home/me/project/a/long/way/down/to/the/file/{n:02}.rs"),
            None,
            "1\n2\n",
        );
    }
    change(&mut seat, 20, "/srv/\x1b[2J\u{202e}漢字", None, "1\n");
    too_large(&mut seat, 21);
    assert_snapshot!(beside(&seat), @r"
    agents · Alt+A walks
    ▸ 1 the agent you talk to
        at rest
        read-only · ↑0 ↓0
    changed · 20 files · +39
    …g/way/down/to/the/file/01.rs +2
    …g/way/down/to/the/file/02.rs +2
    …g/way/down/to/the/file/03.rs +2
    …g/way/down/to/the/file/04.rs +2
    …g/way/down/to/the/file/05.rs +2
    … 15 more (:diff)
    not counted: 1 call
    ");
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
    let changed = |seat: &Seat| beside(seat).split_once("changed").map(|(_, rows)| rows.to_owned());
    let before = changed(&seat);
    assert!(before.as_ref().unwrap().contains("src/parse.rs +3"), "{before:?}");
    let file = |path: &str| ChangedFile { path: path.into(), change: ChangeKind::Modified };
    let files = vec![file("src/parse.rs"), file("new")];
    let target = RewindTarget { to: Some(EventId(101)), scope: RewindScope::Files };
    let done = Rewound { target, files, left: vec![], error: None };
    seat.core(logged_as(102, EventKind::Rewound(done.clone())));
    let rows = changed(&seat).unwrap();
    assert!(rows.contains("src/parse.rs +1") && !rows.contains("new"), "{rows}");
    let undone = Rewound { target: RewindTarget { to: None, ..target }, ..done };
    seat.core(logged_as(103, EventKind::Rewound(undone)));
    assert_eq!(changed(&seat), before);
}

#[test]
fn below_100_columns_there_is_no_list() {
    for size in [(80, 24), (60, 20), (40, 10)] {
        let mut seat = Seat::new(size.0, size.1);
        work(&mut seat);
        assert!(!seat.screen().contains("changed"), "{}", seat.screen());
    }
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
