//! Tests of keys that go from message to message or from output to output, and of the mark at which they stop.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use protocol::event::{EndReason, EventKind, ToolCallStatus};
use serde_json::json;
use tui::{Action, Copied, Msg};

use crate::copy::reply;
use crate::seat::Seat;
use crate::tree;

pub(crate) fn alt(seat: &mut Seat, code: KeyCode) {
    seat.send(Msg::Key(KeyEvent::new(code, KeyModifiers::ALT)));
}

fn say(seat: &mut Seat, text: &str, answer: &str) {
    seat.log(EventKind::UserMessage { text: text.to_owned(), images: vec![] });
    seat.log(reply(answer));
    seat.end_turn(EndReason::Done);
}

pub(crate) fn two_turns() -> Seat {
    let mut seat = Seat::new(80, 14);
    say(&mut seat, "first question", &"a word of the first answer\n\n".repeat(8));
    seat.log(EventKind::UserMessage { text: "second question".to_owned(), images: vec![] });
    let lines: String = (1..=30).map(|n| ["line ", &n.to_string(), "\n"].concat()).collect();
    seat.call(1, "shell_exec", &json!({ "command": "make" }));
    seat.finish(1, ToolCallStatus::Completed, &lines);
    seat.call(2, "shell_exec", &json!({ "command": "make test" }));
    seat.finish(2, ToolCallStatus::Completed, &lines);
    seat.log(reply("One **bold** word.\n\n```sh\nmake\n```\n\nThe end."));
    seat.end_turn(EndReason::Done);
    seat
}

fn marked(seat: &Seat) -> Vec<String> {
    let buffer = seat.buffer();
    let is_marked = |y: u16| {
        use ratatui::style::Modifier;
        (0..buffer.area.width)
            .all(|x| buffer[(x, y)].modifier.contains(Modifier::UNDERLINED | Modifier::BOLD))
    };
    (0..buffer.area.height).filter(|y| is_marked(*y)).map(|y| seat.row(usize::from(y))).collect()
}

#[test]
fn messages_of_both_sides_are_walked_in_both_modes() {
    let walked = [false, true].map(|normal| {
        let mut seat = two_turns();
        if normal {
            seat.press(KeyCode::Esc);
            seat.wait(600);
        }
        let mut walk = |up: bool| {
            match (normal, up) {
                (true, true) => seat.keys("{"),
                (true, false) => seat.keys("}"),
                (false, true) => alt(&mut seat, KeyCode::Up),
                (false, false) => alt(&mut seat, KeyCode::Down),
            }
            let rule =
                seat.row(11).trim_matches(['─', ' ']).split(" · ").next().unwrap_or_default().to_owned();
            (marked(&seat).join("|"), rule)
        };
        let seen: Vec<_> = [true, true, true, true, true, false, false, false, false].map(&mut walk).into();
        let seen: Vec<_> = seen.iter().map(|(row, rule)| [row.as_str(), rule.as_str()].join(" = ")).collect();
        assert!(!seat.screen().contains("lines below"), "the end is followed again\n{}", seat.screen());
        seen.join("\n")
    });
    assert_eq!(walked[0], walked[1]);
    assert_snapshot!(walked[0], @"
          One bold word. = message 4 of 4
        › second question = message 3 of 4
          a word of the first answer = message 2 of 4
        › first question = message 1 of 4
        › first question = no message above
          a word of the first answer = message 2 of 4
        › second question = message 3 of 4
          One bold word. = message 4 of 4
         = no message below
        ");
}

#[test]
fn a_walk_begins_where_the_reader_is_and_brings_the_message_to_the_top() {
    let mut seat = two_turns();
    seat.press(KeyCode::PageUp);
    seat.press(KeyCode::PageUp);
    alt(&mut seat, KeyCode::Down);
    assert_snapshot!(seat.screen(), @"

    › second question
    ✓ run make
      … 22 more lines (Ctrl+O)
      line 23
      line 24
      line 25
      line 26
      line 27
      line 28
      line 29
    ── message 3 of 4 · Alt+↑ Alt+↓ further · 21 lines below - End to follow ───────
    ›
     INSERT  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    ");
    // Esc removes the mark before it leaves a mode.
    seat.press(KeyCode::Esc);
    assert!(marked(&seat).is_empty() && seat.screen().contains(" INSERT "), "{}", seat.screen());
    alt(&mut seat, KeyCode::Up);
    seat.keys("text");
    assert!(seat.screen().contains("› text"), "letters still write");
    assert!(seat.told().is_empty());
}

#[test]
fn the_marked_output_alone_is_opened_and_folded_and_enter_shows_it_whole() {
    let mut seat = two_turns();
    alt(&mut seat, KeyCode::Char('p'));
    assert_snapshot!(seat.screen(), @"
      line 29
      line 30

    ✓ run make test
      … 22 more lines (Ctrl+O)
      line 23
      line 24
      line 25
      line 26
      line 27
      line 28
    ── output 2 of 2 · Alt+P Alt+N further · Enter opens · Ctrl+O folds · 11 lines …
    ›
     INSERT  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    ");
    seat.ctrl('o');
    assert!(seat.screen().contains("line 2\n") && seat.screen().contains("make test"), "{}", seat.screen());
    seat.press(KeyCode::Enter);
    assert_snapshot!(seat.screen(), @"
    ✓ run make test
      line 1
      line 2
      line 3
      line 4
      line 5
      line 6
      line 7
      line 8
      line 9
    Esc close  j/k scroll  21 more lines
    ────────────────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    ");
    seat.press(KeyCode::Esc);
    assert!(marked(&seat)[0].contains("make test"), "the page leads back\n{}", seat.screen());
    seat.ctrl('o');
    assert!(seat.screen().contains("… 22 more lines"), "{}", seat.screen());
    alt(&mut seat, KeyCode::Char('p'));
    assert!(marked(&seat)[0].ends_with("make"), "{:?}", marked(&seat));
    // Without a mark, the key folds the output of all tools.
    seat.press(KeyCode::Esc);
    seat.ctrl('o');
    seat.press(KeyCode::Esc);
    seat.wait(600);
    seat.keys("g");
    seat.keys("/line 2\n");
    assert!(seat.screen().contains("of 22"), "2, and 20 to 29, twice\n{}", seat.screen());
}

#[test]
fn enter_in_normal_opens_the_marked_row_and_writes_without_one() {
    let mut seat = two_turns();
    seat.press(KeyCode::Esc);
    seat.wait(600);
    seat.keys("((\n");
    assert!(seat.screen().contains(" PAGE ") && seat.screen().contains("make"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" NORMAL ") && marked(&seat).is_empty(), "{}", seat.screen());
    seat.press(KeyCode::Enter);
    assert!(seat.screen().contains(" INSERT "));
}

#[test]
fn the_row_of_a_running_sub_agent_leads_to_its_conversation() {
    let mut seat = Seat::new(80, 14);
    seat.log(EventKind::UserMessage { text: "go".to_owned(), images: vec![] });
    tree::spawn(&mut seat, "1.1", "count the files", &[]);
    tree::log(&mut seat, "1.1", reply("They are seven."));
    alt(&mut seat, KeyCode::Char('p'));
    assert!(marked(&seat)[0].contains("count the files"), "{}", seat.screen());
    seat.press(KeyCode::Enter);
    assert!(
        seat.screen().contains("They are seven.") && seat.screen().contains("agent 1.1"),
        "{}",
        seat.screen()
    );
}

#[test]
fn the_marked_message_is_what_y_copies() {
    let mut seat = two_turns();
    seat.press(KeyCode::Esc);
    seat.wait(600);
    seat.keys("{{");
    seat.wait(600);
    seat.slowly("y");
    let copied = |seat: &mut Seat| match std::mem::take(&mut seat.actions).pop() {
        Some(Action::Copy { what, text }) => (what, text),
        other => panic!("{other:?}"),
    };
    assert_eq!(copied(&mut seat), (Copied::Selection, "second question".to_owned()));
    seat.keys("}");
    seat.slowly("y");
    assert_eq!(copied(&mut seat), (Copied::Selection, "One bold word.\n\nmake\n\nThe end.".to_owned()));
}
