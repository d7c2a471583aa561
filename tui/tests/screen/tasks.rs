use insta::assert_snapshot;
use ipc::id::CallId;
use protocol::event::{EventKind, ListedTask, TaskState, TasksUpdated};

use crate::seat::Seat;
use crate::tree::{log, user};

fn list(seat: &mut Seat, tasks: &[(&str, TaskState)]) {
    let task = |(text, state): &(&str, TaskState)| ListedTask { text: (*text).to_owned(), state: *state };
    let tasks = tasks.iter().map(task).collect();
    log(seat, "1", EventKind::TasksUpdated(TasksUpdated { call: Some(CallId(1)), tasks }));
}

const SOME: &[(&str, TaskState)] = &[
    ("Read the parser", TaskState::Done),
    ("Keep the line of each token in the lexer", TaskState::InProgress),
    ("Run the tests", TaskState::Pending),
];

#[test]
fn an_open_list_is_one_row_above_the_prompt_and_folds_when_all_is_done() {
    let mut seat = Seat::new(60, 16);
    user(&mut seat, "1", "fix it");
    list(&mut seat, SOME);
    let rows: Vec<_> = (0..16).map(|y| seat.row(y).trim_end().to_owned()).collect();
    let at = rows.iter().position(|row| row.starts_with("tasks 1/3 · now: Keep the line")).expect("a row");
    assert!(rows[at + 1].starts_with('─'), "{rows:#?}");
    assert!(rows[at].ends_with("in the lexer"), "{rows:#?}");
    list(&mut seat, &[("Read the parser", TaskState::Done)]);
    assert!(!seat.screen().contains("tasks "), "{}", seat.screen());
    let mut low = Seat::new(60, 12);
    list(&mut low, SOME);
    assert!(!low.screen().contains("tasks "), "{}", low.screen());
}

#[test]
fn a_wide_screen_has_the_list_beside_the_transcript() {
    let mut seat = Seat::new(140, 16);
    user(&mut seat, "1", "fix it");
    list(&mut seat, SOME);
    let screen = seat.screen();
    for line in
        ["tasks · 1 of 3 done", "✓ Read the parser", "▸ Keep the line of each token", "· Run the tests"]
    {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    assert!(!screen.contains("tasks 1/3"), "{screen}");
    // A single agent has no row in the pane.
    assert!(!screen.contains("agents"), "{screen}");
}

#[test]
fn a_long_list_shows_the_task_at_hand() {
    let mut seat = Seat::new(140, 16);
    let texts: Vec<_> = (0..50).map(|at| format!("task number {at}")).collect();
    let state = |at| match at {
        0..40 => TaskState::Done,
        40 => TaskState::InProgress,
        _ => TaskState::Pending,
    };
    let tasks: Vec<_> = texts.iter().enumerate().map(|(at, text)| (text.as_str(), state(at))).collect();
    list(&mut seat, &tasks);
    assert!(seat.screen().contains("▸ task number 40"), "{}", seat.screen());
}

#[test]
fn the_command_shows_the_whole_list_and_says_if_there_is_none() {
    let mut seat = Seat::new(60, 16);
    seat.keys(":tasks\n");
    assert!(seat.screen().contains("the agent has no list of tasks"), "{}", seat.screen());
    list(&mut seat, SOME);
    seat.keys(":tasks\n");
    assert_snapshot!(seat.screen(), @"
    tasks · 1 of 3 done
    ✓ Read the parser
    ▸ Keep the line of each token in the lexer
    · Run the tests







    Esc close  j/k scroll
    · the agent has no list of tasks
    ────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
}

#[test]
fn texts_of_the_list_cannot_control_the_terminal() {
    for size in [(60, 16), (140, 16)] {
        let mut seat = Seat::new(size.0, size.1);
        list(&mut seat, &[("a\u{1b}[2J\u{202e}b\n\u{9b}c\u{200b}", TaskState::InProgress)]);
        seat.keys(":tasks\n");
        let cells = seat.buffer().content();
        let is_bad = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!cells.iter().any(|cell| cell.symbol().chars().any(is_bad)), "{}", seat.screen());
        assert!(seat.screen().contains("tasks · 0 of 1 done"), "{}", seat.screen());
    }
}
