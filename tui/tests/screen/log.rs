use std::time::Duration;

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use tui::{Action, LogRow, LogRows, Msg};

use crate::seat::Seat;

fn row(n: u64, kind: &str, text: &str) -> LogRow {
    LogRow {
        at: n * 100,
        after: Duration::from_millis(n * 500),
        agent: "1".to_owned(),
        kind: kind.to_owned(),
        text: text.to_owned(),
    }
}

fn reading() -> Seat {
    let mut seat = Seat::new(100, 14);
    seat.keys(":log\n");
    assert_eq!(std::mem::take(&mut seat.actions), [Action::ReadLog]);
    assert!(
        seat.screen().contains("reading the log") && seat.screen().contains(" LOG "),
        "{}",
        seat.screen()
    );
    let rows = vec![
        row(0, "session_started", r#"{"version":"0.1.0"}"#),
        row(1, "user_message", r#"{"text":"go \u001b[2J"}"#),
        row(2, "tool_call_started", r#"{"call":1,"name":"shell_exec"}"#),
        row(3, "denied", "{\"call\":1}\u{1b}[2J"),
        row(4, "tool_call_started", r#"{"call":2,"name":"read_file"}"#),
    ];
    seat.send(Msg::LogRead(Ok(LogRows { rows, left_out: 7 })));
    seat
}

#[test]
fn events_are_a_line_each_and_the_last_one_is_chosen() {
    let mut seat = reading();
    assert_snapshot!(seat.screen(), @r#"
    the session's log · 5 events, 7 older ones left out
           0.0  session_started         {"version":"0.1.0"}
           0.5  user_message            {"text":"go \u001b[2J"}
           1.0  tool_call_started       {"call":1,"name":"shell_exec"}
           1.5  denied                  {"call":1}\u{1b}[2J
    ▸      2.0  tool_call_started       {"call":2,"name":"read_file"}




    q close  j/k move  Enter the whole event  / filter  f only its kind
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     LOG  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    "#);
    seat.keys("kk");
    seat.press(KeyCode::Enter);
    assert_eq!(std::mem::take(&mut seat.actions), [Action::ReadEvent { at: 200 }]);
    seat.send(Msg::EventRead(Ok("{\n  \"call\": 1,\n  \"x\": \"\u{1b}[2J\"\n}".to_owned())));
    assert_snapshot!(seat.screen(), @r#"
      {
        "call": 1,
        "x": "\u{1b}[2J"
      }






    q back to the log  j/k scroll
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     LOG  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5 · project
    "#);
    seat.keys("q");
    assert!(seat.screen().contains("▸      1.0"), "back at the same event\n{}", seat.screen());
    seat.keys("q");
    assert!(
        seat.screen().contains(" INSERT ") && !seat.screen().contains("session_started"),
        "{}",
        seat.screen()
    );
}

#[test]
fn the_log_is_filtered_by_text_and_by_kind() {
    let mut seat = reading();
    seat.keys("f");
    assert!(seat.screen().contains("2 of 5 events") && seat.screen().contains("only tool_call_started"));
    seat.keys("f/shell started\n");
    assert!(seat.screen().contains("1 of 5 events") && seat.screen().contains("with \"shell started\""));
    seat.keys("/x");
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains("1 of 5 events"), "Esc leaves the filter as it was\n{}", seat.screen());
    seat.keys("/\n");
    assert!(seat.screen().contains(" 5 events"), "{}", seat.screen());
}

#[test]
fn a_log_that_cannot_be_read_says_so_and_late_rows_are_nobodys() {
    let mut seat = Seat::new(80, 14);
    seat.keys(":log\n");
    seat.send(Msg::LogRead(Err("cannot read the log /s: it is gone".to_owned())));
    assert!(seat.screen().contains("! cannot read the log /s: it is gone"), "{}", seat.screen());
    let before = seat.screen();
    seat.send(Msg::LogRead(Ok(LogRows { rows: vec![row(1, "denied", "{}")], left_out: 0 })));
    seat.send(Msg::EventRead(Ok("{}".to_owned())));
    assert_eq!(seat.screen(), before);
}
