//! Tests of selecting text in the transcript, and of the text that is copied.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use protocol::event::{EndReason, EventKind, ToolCallStatus};
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use serde_json::json;
use tui::{Action, Colour, Copied, Start};

use crate::copy::reply;
use crate::seat::{Seat, start};
use crate::walk::{alt, two_turns};

fn copied(seat: &mut Seat) -> String {
    match std::mem::take(&mut seat.actions).pop() {
        Some(Action::Copy { what: Copied::Selection, text }) => text,
        other => panic!("{other:?}\n{}", seat.screen()),
    }
}

fn replied(size: (u16, u16), text: &str) -> Seat {
    replied_in(start(size), text)
}

fn replied_in(start: Start, text: &str) -> Seat {
    let mut seat = Seat::from(start);
    seat.log(EventKind::UserMessage { text: "go".to_owned(), images: vec![] });
    seat.log(reply(text));
    seat.end_turn(EndReason::Done);
    seat.press(KeyCode::Esc);
    seat.wait(600);
    seat.actions.clear();
    seat
}

fn select(seat: &mut Seat, keys: &str) -> String {
    seat.slowly(keys);
    seat.slowly("y");
    copied(seat)
}

#[test]
fn lines_are_selected_and_seen_and_copied_without_their_margins() {
    let mut seat = two_turns();
    seat.press(KeyCode::Esc);
    seat.wait(600);
    seat.slowly("V");
    seat.slowly("kkkk");
    assert_snapshot!(seat.screen(), @"
      line 29
      line 30

      One bold word.

      ╭ sh
      │ make

      The end.

    done · 10.5k in, 85% cached, 456 out, $0.032 · 3.4 s
    ── 5 rows · y copies · a all of it · o other end · Esc leaves ──────────────────
    ›
     SELECT  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    ");
    assert_eq!(seat.reversed(8).trim_end(), "  The end.");
    assert!(seat.reversed(5).is_empty(), "{:?}", seat.reversed(5));
    seat.slowly("y");
    let done = "done · 10.5k in, 85% cached, 456 out, $0.032 · 3.4 s";
    assert_eq!(copied(&mut seat), format!("make\n\nThe end.\n\n{done}"));
    assert!(seat.screen().contains(" NORMAL ") && !seat.screen().contains("lines below"));
}

#[test]
fn a_selection_is_one_area_in_which_escapes_show() {
    let mut start = start((60, 20));
    start.capabilities.colour = Colour::Exact;
    let mut seat = replied_in(start, "Before.\n\n```rust\nlet a = \"b\u{1b}c\"; // d\n```\n");
    seat.slowly("Vkkkk");
    let y = seat_row(&seat, "let a");
    let cells: Vec<_> = (0..60).map(|x| seat.buffer()[(x, y)].clone()).collect();
    let is_plain = |cell: &Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
    assert!(cells.iter().all(is_plain) && !seat.reversed(y).is_empty(), "{}", seat.screen());
    let escapes = cells.iter().filter(|cell| cell.modifier.contains(Modifier::UNDERLINED));
    assert_eq!(escapes.map(Cell::symbol).collect::<String>(), "\\u{1b}");
}

#[test]
fn a_wrapped_line_is_one_line_and_a_list_keeps_its_marks() {
    let words = "word ".repeat(30);
    let text = format!("A sentence of {words}end.\n\n- one {words}\n- two\n  1. deep\n\n> quoted\n");
    let mut seat = replied((40, 24), &text);
    let whole = select(&mut seat, "Vg");
    let sentence = format!("A sentence of {words}end.");
    assert!(whole.contains(&format!("\n{sentence}\n")), "{whole}");
    assert!(whole.contains(&format!("\n- one {}\n- two\n  1. deep\n", words.trim_end())), "{whole}");
    assert!(whole.contains("\n> quoted"), "{whole}");
    assert!(whole.lines().all(|line| !line.ends_with(' ')), "{whole:?}");
    // A selected row in the middle of a wrapped line selects the whole line.
    seat.keys("/sentence\n");
    seat.wait(600);
    seat.slowly("V");
    seat.slowly("j");
    seat.slowly("y");
    assert_eq!(copied(&mut seat), sentence);
}

#[test]
fn code_is_copied_as_it_was_written() {
    let code =
        "all:\n\tcc -o a a.c  \n\n\techo 'a very long line that does not fit into the columns' | tee\tout\n";
    let text = format!("Before.\n\n```make\n{code}```\n\nAfter.");
    let mut seat = replied((40, 24), &text);
    seat.keys("/cc -o\n");
    seat.wait(600);
    assert_eq!(select(&mut seat, "va"), code.trim_end_matches('\n'));
    seat.keys("/Before\n");
    seat.wait(600);
    // The second press selects the whole message.
    assert_eq!(select(&mut seat, "vaa"), format!("Before.\n\n{code}\nAfter."));
}

#[test]
fn characters_and_columns_are_cut_from_their_rows() {
    let mut seat = replied((60, 20), "alpha beta gamma\n\n```\n1234567\nabcdefg\n```\n");
    seat.keys("/alpha\n");
    seat.wait(600);
    assert_eq!(select(&mut seat, "vww"), "alpha beta g");
    assert_eq!(select(&mut seat, "v$b"), "alpha beta g");
    assert_eq!(select(&mut seat, "v$"), "alpha beta gamma");
    seat.keys("/1234\n");
    seat.wait(600);
    assert_eq!(select(&mut seat, "vjoll"), "34567\na");
    seat.slowly("v");
    seat.slowly("l");
    // The other end of the selection moves now.
    seat.slowly("o");
    seat.slowly("ll");
    assert_eq!(select(&mut seat, ""), "23");
    seat.ctrl('v');
    seat.slowly("jll");
    assert_eq!(seat.reversed(seat_row(&seat, "1234567")), "123");
    assert_eq!(select(&mut seat, ""), "123\nabc");
}

fn seat_row(seat: &Seat, text: &str) -> u16 {
    u16::try_from(seat.screen().lines().position(|row| row.contains(text)).unwrap()).unwrap()
}

#[test]
fn a_change_is_copied_like_a_patch_and_output_without_marks() {
    let mut seat = Seat::new(50, 24);
    seat.log(EventKind::UserMessage { text: "go".to_owned(), images: vec![] });
    let long = "x".repeat(60);
    seat.call(
        1,
        "edit_file",
        &json!({ "path": "a.rs", "old_string": "one\n", "new_string": format!("two\n{long}\n") }),
    );
    seat.finish(1, ToolCallStatus::Completed, "");
    seat.call(2, "shell_exec", &json!({ "command": "cat a" }));
    seat.finish(2, ToolCallStatus::Completed, &format!("\u{1b}[31m{long}\u{1b}[0m\n\u{7}bell\n"));
    seat.end_turn(EndReason::Done);
    seat.press(KeyCode::Esc);
    seat.wait(600);
    seat.actions.clear();
    let whole = select(&mut seat, "Vg");
    assert!(whole.contains(&format!("-one\n+two\n+{long}\n")), "{whole}");
    assert!(
        whole.contains(&format!("\n{long}\n\\u{{7}}bell")),
        "no control character is copied raw: {whole}"
    );
}

#[test]
fn what_arrives_meanwhile_moves_nothing_and_the_end_is_followed_afterwards() {
    let mut seat = two_turns();
    alt(&mut seat, KeyCode::Char('v'));
    assert!(seat.screen().contains(" SELECT "), "{}", seat.screen());
    let before = seat.screen();
    seat.stream(&"more\n\n".repeat(20));
    seat.draw();
    let top = |screen: &str| screen.lines().take(11).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(top(&seat.screen()), top(&before), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" INSERT ") && !seat.screen().contains("The end."), "{}", seat.screen());
    assert!(!seat.actions.iter().any(|action| matches!(action, Action::Copy { .. })));
}

#[test]
fn a_selection_is_begun_by_its_name_and_left_for_a_command_or_a_paste() {
    let mut seat = Seat::from(Start { is_plain: true, ..start((80, 14)) });
    seat.log(reply("One.\n\nTwo."));
    seat.keys("/select\n");
    assert!(seat.screen().contains(" SELECT "), "{}", seat.screen());
    seat.keys(":cost\n");
    assert!(seat.screen().contains("tokens and money"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" INSERT "), "{}", seat.screen());
    seat.keys("/select\n");
    seat.wait(600);
    seat.send(tui::Msg::Paste("pasted".to_owned()));
    assert!(seat.screen().contains("› pasted") && seat.screen().contains(" INSERT "), "{}", seat.screen());
    assert!((0..11).all(|y| seat.reversed(y).is_empty()));
    assert_eq!(seat.actions, []);
}
