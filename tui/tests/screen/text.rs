//! Tests of the layout of replies, command output and file changes.

use std::time::Duration;

use insta::assert_snapshot;
use ipc::id::CallId;
use proptest::prelude::*;
use protocol::approval::ServerRequest;
use protocol::event::{EventKind, FileDiff, ToolCallStatus};
use protocol::frontend::UiEventKind;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use serde_json::json;
use tui::{Action, Colour, Msg, view};

use crate::core::{patch, update};
use crate::hostile::check_cells;
use crate::seat::{Seat, start};

const REPLY: &str = "## Result\n\nThe *parser* now reads `a + b`:\n\n1. it **splits** the input\n2. and sums up\n\n```rust\n// adds\nfn add(a: u8) -> u8 {\n    a + 12\n}\n```\n\n| file | lines |\n|---|--:|\n| `src/lib.rs` | 12 |\n\nSee [the book](https://doc.rust-lang.org/book/).\n";

fn seat(colour: Colour, size: (u16, u16)) -> Seat {
    let mut start = start(size);
    start.capabilities.colour = colour;
    Seat::from(start)
}

/// Highlights the code on the screen, as the drawing loop does.
pub(crate) fn read_code(seat: &mut Seat) {
    while let Some(at) = seat.actions.iter().rposition(|action| matches!(action, Action::Read(_))) {
        let Action::Read(code) = seat.actions.remove(at) else { unreachable!() };
        seat.send(Msg::CodeRead(code.read()));
    }
}

fn cell<'a>(seat: &'a Seat, text: &str) -> &'a Cell {
    let screen = seat.screen();
    let (y, row) =
        screen.lines().enumerate().find(|(_, row)| row.contains(text)).unwrap_or_else(|| panic!("{screen}"));
    let before = row.split(text).next().unwrap();
    let x = unicode_width::UnicodeWidthStr::width(before);
    seat.buffer().cell((u16::try_from(x).unwrap(), u16::try_from(y).unwrap())).unwrap()
}

#[test]
fn a_reply_streams_as_markdown() {
    let mut seat = Seat::new(60, 28);
    for c in REPLY.chars() {
        seat.stream(&c.to_string());
    }
    assert_snapshot!(seat.screen(), @"
    · Reads this project, asks before each change. No network.
      Secrets hidden.
    · try: fix the failing test · @README.md explain this ·
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit

      Result

      The parser now reads a + b:

      1. it splits the input
      2. and sums up

      ╭ rust
      │ // adds
      │ fn add(a: u8) -> u8 {
      │     a + 12
      │ }

      file       │ lines
      ───────────┼──────
      src/lib.rs │    12

      See the book (https://doc.rust-lang.org/book/).
    ────────────────────────────────────────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    let mut at_once = Seat::new(60, 28);
    at_once.stream(REPLY);
    assert_eq!(seat.screen(), at_once.screen());
}

#[test]
fn deltas_of_one_frame_are_read_together() {
    let mut seat = Seat::new(60, 20);
    seat.draws = false;
    seat.stream("*one");
    assert_eq!(seat.tick(), None, "the first one is read at once");
    seat.stream("* two");
    seat.stream(" three");
    let wait = seat.tick().unwrap();
    assert!(wait <= Duration::from_millis(16), "{wait:?}");
    seat.now += wait;
    seat.send(Msg::Tick);
    assert_eq!(seat.tick(), None);
    seat.draw();
    assert!(seat.screen().contains("\n  one two three\n"), "{}", seat.screen());
}

#[test]
fn lines_of_prose_are_no_longer_than_can_be_read_well() {
    let mut seat = Seat::new(160, 20);
    let words = "some words of a line ".repeat(12);
    seat.stream(&format!("{words}\n\n```\n{words}\n```\n"));
    let rows: Vec<String> = seat.screen().lines().map(str::to_owned).collect();
    let longest = |code: bool| {
        let rows = rows.iter().filter(|row| row.contains("words") && row.contains(['│', '↪']) == code);
        rows.map(|row| row.chars().count()).max().unwrap()
    };
    assert!((95..=102).contains(&longest(false)) && longest(true) > 150, "{}", seat.screen());
}

#[test]
fn a_reply_that_does_not_count_looks_alike_everywhere() {
    let mut seat = seat(Colour::Exact, (60, 28));
    seat.stream(REPLY);
    read_code(&mut seat);
    seat.log(EventKind::ModelFailed {
        kind: "overloaded_error".into(),
        message: "overloaded".to_owned(),
        discarded: true,
        retry_in_ms: None,
        left_out: None,
    });
    let texts = ["Result", "splits", "fn", "12", "src/lib.rs", "https://doc"];
    let styles = texts.map(|text| cell(&seat, text).style());
    assert!(cell(&seat, "Result").modifier == Modifier::CROSSED_OUT && styles[0].bg == Some(Color::Reset));
    assert!(styles.iter().all(|style| *style == styles[0]), "{styles:?}");
}

#[test]
fn code_shows_plain_and_then_by_the_kinds_of_its_text() {
    let mut seat = seat(Colour::Exact, (60, 28));
    assert!(
        !seat.actions.iter().any(|action| matches!(action, Action::Read(_))),
        "the first frame reads no code"
    );
    seat.stream(REPLY);
    let plain = cell(&seat, "// adds").fg;
    assert_eq!(plain, cell(&seat, "12").fg);
    let before = seat.screen();
    read_code(&mut seat);
    assert_eq!(seat.screen(), before, "no line moves");
    let colours = ["// adds", "fn", "add(a", "u8)", "12", "a +"].map(|text| cell(&seat, text).fg);
    assert_eq!(colours[5], plain);
    assert!(colours[..5].iter().all(|colour| *colour != plain), "{colours:?}");
    assert!(cell(&seat, "fn").modifier.contains(Modifier::BOLD));
    // Code that continues to stream keeps the colours of the lines that were highlighted.
    seat.stream("\n```py\nx = 'text'\n");
    read_code(&mut seat);
    seat.stream("y = 'more'\n");
    assert_ne!(cell(&seat, "'text'").fg, cell(&seat, "'more'").fg);
    read_code(&mut seat);
    assert_eq!(cell(&seat, "'text'").fg, cell(&seat, "'more'").fg);
}

#[test]
fn without_colours_emphasis_tells_kinds_apart() {
    for colour in [Colour::None, Colour::Sixteen] {
        let mut seat = seat(colour, (60, 28));
        seat.stream(REPLY);
        read_code(&mut seat);
        assert!(cell(&seat, "// adds").modifier.contains(Modifier::ITALIC));
        assert!(cell(&seat, "Result").modifier.contains(Modifier::BOLD));
        assert!(cell(&seat, "https://doc").modifier.contains(Modifier::UNDERLINED));
        let cells = &seat.buffer().content;
        let coloured =
            cells.iter().take(60 * 23).filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(coloured.count(), 0);
    }
}

#[test]
fn output_has_its_colours() {
    let output = "\x1b[1;32mok\x1b[0m 1 \x1b[38;2;1;2;3mdark\x1b[0m \x1b[31;41msame\x1b[0m \x1b[38;5;208morange\x1b[0m\n";
    for (colour, green, orange) in [
        (Colour::None, Color::Reset, Color::Reset),
        (Colour::Sixteen, Color::Green, Color::Reset),
        (Colour::Indexed, Color::Green, Color::Indexed(208)),
        (Colour::Exact, Color::Green, Color::Indexed(208)),
    ] {
        let mut seat = seat(colour, (60, 20));
        seat.call(1, "shell_exec", &json!({"command": "make"}));
        seat.core(UiEventKind::OutputDelta { call: CallId(1), text: output.to_owned() });
        for _ in 0..2 {
            assert!(seat.screen().contains("\n  ok 1 dark same orange\n"), "{}", seat.screen());
            assert_eq!((cell(&seat, "ok").fg, cell(&seat, "orange").fg), (green, orange));
            // Text in a colour that would be unreadable has the colour of the rest.
            let rest = cell(&seat, "1 dark").fg;
            assert_eq!((cell(&seat, "dark").fg, cell(&seat, "same").fg), (rest, rest));
            seat.finish(1, ToolCallStatus::Completed, output);
        }
    }
}

#[test]
fn each_frame_after_scrolling_is_that_of_an_empty_screen() {
    let mut seat = Seat::new(50, 16);
    for n in 0..8 {
        seat.stream(&format!("- 👨\u{200d}👩\u{200d}👧 family {n}\n- ⚠\u{fe0f} 漢字 e\u{301}\n- 👍🏽\n\n"));
        seat.stream("🇩🇪 1\u{fe0f}\u{20e3}\n\n| 👩🏽\u{200d}💻 | b |\n|-|-|\n| x | ⚠\u{fe0f} |\n\n");
    }
    seat.press(crossterm::event::KeyCode::Esc);
    for keys in "kkkkkgjjjjjjjjjjjjjjjGkjkkkkkkkkk".split("").filter(|key| !key.is_empty()) {
        seat.keys(keys);
        // Cells that a wide character covers are empty here; the tests of the supervisor's painter check a terminal.
        check_cells(seat.buffer()).unwrap();
        let mut fresh = Terminal::new(TestBackend::new(50, 16)).unwrap();
        let fresh = fresh.draw(|frame| _ = view(&seat.model, frame)).unwrap();
        assert_eq!(seat.buffer(), fresh.buffer, "{keys}");
    }
}

#[test]
fn an_emoji_of_several_characters_is_written_at_the_prompt() {
    let mut seat = Seat::new(50, 16);
    seat.send(Msg::Paste("a 👨\u{200d}👩\u{200d}👧 1\u{fe0f}\u{20e3} 🇩🇪 b\u{200d}".to_owned()));
    assert_eq!(seat.row(14), "› a 👨\u{200d}👩\u{200d}👧 1\u{fe0f}\u{20e3} 🇩🇪 b\\u{200d}");
    // The caret passes each emoji as one character.
    for _ in 0..3 {
        seat.press(crossterm::event::KeyCode::Left);
    }
    seat.keys("x");
    assert_eq!(seat.row(14), "› a 👨\u{200d}👩\u{200d}👧 1\u{fe0f}\u{20e3} x🇩🇪 b\\u{200d}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_markdown_leaves_the_transcript(
        pieces in proptest::collection::vec(
            "([-#>*|`~<&!\\[\\]() ]{1,4}|[a-z]{1,9} |[0-9]{1,3}[.] |\n|\n\n|\t|\x1b\\[31m|\u{202e}|漢字|👨\u{200d}👩|⚠\u{fe0f}|[|]a[|]b[|]\n[|]-[|]-[|]\n|```\n){1,20}", 1..6),
        width in 40_u16..150, height in 10_u16..30,
    ) {
        let mut quiet = Seat::new(width, height);
        let mut seat = Seat::new(width, height);
        for text in &pieces {
            seat.stream(text);
            check_cells(seat.buffer())?;
            let first_column = seat.buffer().content.chunks(usize::from(width)).skip(3).take(usize::from(height) / 2);
            for row in first_column {
                prop_assert!([" ", "─", "/", "·"].contains(&row[0].symbol()), "{:?}", row[0]);
            }
        }
        quiet.draw();
        let below = usize::from(width) * usize::from(height - 3);
        prop_assert_eq!(&seat.buffer().content[below..], &quiet.buffer().content[below..]);
    }
}

pub(crate) fn finish_with(seat: &mut Seat, call: u64, diffs: Vec<FileDiff>) {
    seat.log(EventKind::ToolCallFinished {
        call: CallId(call),
        tool_use: "t".into(),
        status: ToolCallStatus::Completed,
        content: "done".to_owned(),
        explanation_bytes: None,
        duration_ms: 12,
        diffs,
        diffs_left_out: false,
        images: vec![],
    });
}

fn change(path: &str, old: Option<&str>, new: &str) -> FileDiff {
    let path = ["/home/me/project/", path].concat();
    FileDiff {
        path: path.as_str().into(),
        first_line: Some(1),
        old_text: old.map(str::to_owned),
        new_text: new.to_owned(),
    }
}

#[test]
fn a_change_shows_in_its_request_and_then_once_as_it_was_made() {
    let mut seat = Seat::new(70, 24);
    seat.call(8, "write_file", &json!({"path": "src/lib.rs", "content": "one\nTWO\nthree\n"}));
    let diff = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
    seat.ask(1, ServerRequest::ApplyPatchApproval(patch(&[("/home/me/project/src/lib.rs", update(diff))])));
    assert_eq!(seat.screen().matches("TWO").count(), 1, "{}", seat.screen());
    seat.core(UiEventKind::ApprovalClosed { id: ipc::id::ApprovalId(1) });
    finish_with(&mut seat, 8, vec![change("src/lib.rs", Some("one\ntwo\nthree\n"), "one\nTWO\nthree\n")]);
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets
      hidden.
    · try: fix the failing test · @README.md explain this ·
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode ·
      Esc stop · :q quit
    ✓ write src/lib.rs +1 -1
    │ 1  one
    │ 2 -two
    │ 2 +TWO
    │ 3  three









    ──────────────────────────────────────────── 1 file · +1 -1 · :diff ──
    ›
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
}

#[test]
fn the_changes_of_a_session_show_by_file_and_by_step() {
    let mut seat = Seat::new(76, 34);
    let edit = json!({"path": "b.txt", "old_string": "x\n", "new_string": "y\n"});
    seat.call(1, "write_file", &json!({"path": "a.txt", "content": "1\n2\n"}));
    finish_with(&mut seat, 1, vec![change("a.txt", Some("1\n"), "1\n2\n")]);
    seat.call(2, "edit_file", &edit);
    finish_with(&mut seat, 2, vec![FileDiff { first_line: Some(41), ..change("b.txt", Some("x\n"), "y\n") }]);
    seat.call(3, "write_file", &json!({"path": "a.txt", "content": "1\n3\n"}));
    finish_with(&mut seat, 3, vec![change("a.txt", Some("1\n2\n"), "1\n3\n")]);
    seat.keys("/diff\n");
    assert_snapshot!(seat.screen(), @"
    a.txt +1
    · call 1: write; call 3: write
    │ 1  1
    │ 2 +3
    b.txt +1 -1
    · call 2: edit
    │ 41 -x
    │ 41 +y






















    Esc close  j/k scroll
    ────────────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    seat.keys("/diff steps\n");
    assert_snapshot!(seat.screen(), @"
    a.txt +1
    · call 1: write
    │ 1  1
    │ 2 +2
    b.txt +1 -1
    · call 2: edit
    │ 41 -x
    │ 41 +y
    a.txt +1 -1
    · call 3: write
    │ 1  1
    │ 2 -2
    │ 2 +3

















    Esc close  j/k scroll
    ────────────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn before_and_after_stand_side_by_side_on_a_wide_screen() {
    let mut seat = Seat::new(188, 20);
    seat.call(1, "edit_file", &json!({"path": "a.txt", "old_string": "b", "new_string": "B"}));
    finish_with(
        &mut seat,
        1,
        vec![change("a.txt", Some("a\nold words here\nc\n"), "a\nnew words here\nand more\nc\n")],
    );
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit
    ✓ edit a.txt +2 -1
    │ 1  a                                                                                        │ 1  a
    │ 2 -old words here                                                                           │ 2 +new words here
    │                                                                                             │ 3 +and more
    │ 3  c                                                                                        │ 4  c








    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────── 1 file · +2 -1 · :diff ──
    ›
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    ");
}
