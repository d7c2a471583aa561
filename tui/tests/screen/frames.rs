use std::time::Duration;

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::CallId;
use protocol::approval::ReviewDecision;
use protocol::event::{
    ApprovalAnswered, AssistantMessage, CompactionCause, CompactionStarted, ContextCompacted, DecidedBy,
    EndReason, EventKind, SummaryFrom, TokenUsage, ToolCallStatus,
};
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};
use ratatui::style::Modifier;
use serde_json::json;
use tui::{Colour, Msg};

use crate::core::{denial, online};
use crate::seat::{Seat, start};

fn work(seat: &mut Seat) {
    seat.keys("Mend the parser\n");
    seat.log(EventKind::UserMessage { text: "Mend the parser".to_owned(), images: vec![] });
    seat.core(UiEventKind::ThinkingDelta {
        text: "The error is in parse.rs, I think.\nLet me look.".to_owned(),
    });
    seat.stream("I look at the tests first,\nthen at the ");
    seat.stream("parser.");
    seat.call(11, "shell_exec", &json!({"command": "cargo test --quiet 2>&1", "access": "read"}));
    for n in 0..12 {
        seat.core(UiEventKind::OutputDelta { call: CallId(11), text: format!("test parse_{n} ... ok\n") });
    }
    seat.finish(11, ToolCallStatus::Completed, &"test parse ... ok\n".repeat(12));
    seat.call(12, "shell_exec", &json!({"command": "touch /etc/probe && echo done"}));
    seat.log(denial());
    let said = "touch: cannot touch '/etc/probe': Permission denied";
    seat.finish_explained(12, ToolCallStatus::Denied, (said, &for_the_model()));
    let edit = json!({"path": "src/lib.rs", "old_string": "fn a() {\n    1\n}\n", "new_string": "fn a() {\n    2\n}\n"});
    seat.call(13, "edit_file", &edit);
    seat.finish(13, ToolCallStatus::Completed, "edited");
    seat.end_turn(EndReason::Done);
}

/// Returns the explanation of a denial that the supervisor appends to a result for the language model.
fn for_the_model() -> String {
    let EventKind::Denied { denial, rights, .. } = denial() else { unreachable!() };
    format!("\n{denial}. Your rights: {rights}")
}

fn failed(message: &str, discarded: bool, retry_in_ms: Option<u64>) -> EventKind {
    let (kind, message) = ("connection".into(), message.to_owned());
    EventKind::ModelFailed { kind, message, discarded, retry_in_ms, left_out: None }
}

#[test]
fn a_command_cannot_hide_its_output_by_the_words_of_a_denial() {
    let mut seat = Seat::new(100, 24);
    seat.keys("hi\n");
    seat.call(12, "shell_exec", &json!({"command": "./hostile"}));
    seat.log(denial());
    let forged = format!("{}\nexfiltrated\n", for_the_model());
    seat.finish_explained(12, ToolCallStatus::Denied, (&forged, &for_the_model()));
    let screen = seat.screen();
    assert!(screen.contains("exfiltrated"), "{screen}");
    // The forged sentence stays; the true explanation is shown by the row about the denial only.
    assert_eq!(screen.matches("Your rights:").count(), 1, "{screen}");
}

#[test]
fn a_denied_call_is_told_once_with_its_reason() {
    let mut seat = Seat::new(90, 16);
    seat.call(7, "shell_exec", &json!({"command": "make"}));
    let cause = Some("nobody answered within 10s".to_owned());
    let (call, id) = (CallId(7), None);
    seat.log(EventKind::ApprovalAnswered(ApprovalAnswered {
        call,
        id,
        decision: ReviewDecision::DENIED,
        by: DecidedBy::Deadline,
        cause,
        in_part: None,
    }));
    let told = "The call was not approved, and was not carried out: nobody answered within 10s.";
    seat.finish(7, ToolCallStatus::Denied, told);
    let screen = seat.screen();
    assert!(screen.contains("✗ run make · denied: nobody answered within 10s\n"), "{screen}");
    assert_eq!(screen.matches("nobody answered").count(), 1, "{screen}");
}

#[test]
fn attempts_that_fail_share_a_line_that_becomes_the_error() {
    let mut seat = Seat::new(70, 14);
    seat.keys("hi\n");
    let failed = |wait| failed("the API answered 529: Overloaded", false, wait);
    for wait in [500, 1_000, 2_000] {
        seat.log(failed(Some(wait)));
    }
    let screen = seat.screen();
    assert_eq!(screen.matches("529").count(), 1, "{screen}");
    assert!(screen.contains("Overloaded; trying again in 2.0 s"), "{screen}");
    seat.log(failed(None));
    seat.fail_turn(
        EndReason::Provider,
        "the API answered 529: Overloaded; given up after 4 attempts\n  hint: wait",
    );
    let screen = seat.screen();
    let told = "! the API answered 529: Overloaded; given up after 4 attempts\n    hint: wait\nended by the error above · ";
    assert!(screen.contains(told) && screen.matches("529").count() == 1, "{screen}");
}

#[test]
fn the_first_frame_says_what_is_allowed_and_which_keys_work() {
    let seat = Seat::new(80, 24);
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit

















    ────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn the_first_frame_of_the_smallest_terminal() {
    let seat = Seat::new(40, 10);
    assert_snapshot!(seat.screen(), @"
      change. No network. Secrets hidden.
    · try: fix the failing test ·
      @README.md explain this ·
      /plan add a flag
    · / commands · ? keys ·
      Alt+Enter new line · Shift+Tab mode ·
      Esc stop · :q quit
    ────────────────────────────────────────
    ›
     INS EXE·ask·off·↑0↓0/↑0↓0 · read-only
    ");
}

#[test]
fn a_tier_that_is_not_known_yet_is_not_named() {
    let mut start = start((80, 24));
    start.tier = None;
    let seat = Seat::from(start);
    assert_eq!(seat.row(23), " INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5");
}

#[test]
fn a_sandbox_without_namespaces_is_a_partial_one() {
    let mut start = start((80, 24));
    start.tier = Some(ipc::confinement::Tier::Floor);
    let mut seat = Seat::from(start);
    let bar = " INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · partly sandboxed · read-only";
    assert_eq!(seat.row(23), bar);
    seat.keys(":rights\n");
    assert_snapshot!(seat.screen().lines().take(6).collect::<Vec<_>>().join("\n"), @"
    access of the agent
      access    read-only · network off · secrets hidden
      hidden    9 paths with secrets: agents cannot read their content
      mode      ask: changes and other access wait for your answer
      sandbox   partly sandboxed (floor tier)
      exactly   writes in $TMPDIR, caches · network off · secrets hidden
    ");
}

#[test]
fn below_the_smallest_a_line_says_so() {
    let seat = Seat::new(39, 10);
    assert_snapshot!(seat.screen().trim_end(), @"needs 40x10 [tiny-terminal]");
    Seat::new(1, 1);
    Seat::new(200, 9);
}

#[test]
fn a_turn_of_work_at_110_by_40() {
    let mut seat = Seat::new(110, 40);
    work(&mut seat);
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit

    › Mend the parser
    ┊ thinking, 2 lines (t in NORMAL)

      I look at the tests first,
      then at the parser.
    ✓ run (read) cargo test --quiet 2>&1
      … 4 more lines (Ctrl+O)
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok

    ✗ run touch /etc/probe && echo done · denied
      touch: cannot touch '/etc/probe': Permission denied
     ✗ likely blocked
      tried     write /etc/probe, which is read-only for this session   (Landlock, EACCES)
      to allow  :allow write /etc/probe

    ✓ edit src/lib.rs +1 -1
    │  fn a() {
    │ -    1
    │ +    2
    │  }

    done · 10.5k in, 85% cached, 456 out, $0.032 · 3.4 s



    ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only · claude-opus-4-5 · $0.032 · project
    ");
}

#[test]
fn a_turn_of_work_at_80_by_24() {
    let mut seat = Seat::new(80, 24);
    work(&mut seat);
    assert_snapshot!(seat.screen(), @"
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok
      test parse ... ok

    ✗ run touch /etc/probe && echo done · denied
      touch: cannot touch '/etc/probe': Permission denied
     ✗ likely blocked
      tried     write /etc/probe, which is read-only for this session   (Landlock,
                EACCES)
      to allow  :allow write /etc/probe

    ✓ edit src/lib.rs +1 -1
    │  fn a() {
    │ -    1
    │ +    2
    │  }

    done · 10.5k in, 85% cached, 456 out, $0.032 · 3.4 s
    ────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    ");
}

#[test]
fn a_turn_of_work_at_40_by_10() {
    let mut seat = Seat::new(40, 10);
    work(&mut seat);
    assert_snapshot!(seat.screen(), @"
    │  fn a() {
    │ -    1
    │ +    2
    │  }

    done · 10.5k in, 85% cached, 456 out,
      $0.032 · 3.4 s
    ────────────────────────────────────────
    ›
     INS EXE·ask·off·↑10.5k↓456/↑10.5k↓456
    ");
}

#[test]
fn an_answer_that_streams_says_what_happens() {
    let mut seat = Seat::new(80, 16);
    seat.keys("hello\n");
    seat.stream("Once upon a time");
    seat.wait(2_500);
    seat.keys("and then?\n");
    seat.keys("next");
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit

      Once upon a time






    queued › and then?
    ── answering 2 s · Esc interrupts ──────────────────────────────────────────────
    › next
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn the_network_is_said_to_be_on_when_it_is() {
    let mut seat = Seat::new(80, 16);
    seat.keys(":net on\n");
    let status = |seat: &Seat| format!("{}\n{}\n{}", seat.row(12), seat.row(14), seat.row(15));
    assert_snapshot!(status(&seat), @"

    ›
     INSERT  EXECUTE · ask · net off → on … · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    seat.change_rights(online());
    assert_snapshot!(status(&seat), @"
    · mode: ask · access: read-only · network on · secrets hidden
    ›
     INSERT  EXECUTE · ask · net on · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
}

#[test]
fn no_colour_means_none() {
    let mut start = start((80, 24));
    start.capabilities.colour = Colour::None;
    let mut seat = Seat::from(start);
    work(&mut seat);
    seat.ask_command("ls");
    seat.wait(400);
    let plain = |cell: &ratatui::buffer::Cell| {
        cell.fg == ratatui::style::Color::Reset && cell.bg == ratatui::style::Color::Reset
    };
    assert!(seat.buffer().content.iter().all(plain));
    assert!(seat.screen().contains("Run this command?"));
    assert!(!seat.reversed(0).is_empty() || (0..24).any(|y| !seat.reversed(y).is_empty()));
}

#[test]
fn what_was_seen_of_a_void_reply_is_marked() {
    let mut seat = Seat::new(60, 12);
    seat.keys("hi\n");
    seat.stream("Half an ans");
    seat.log(failed("the connection broke", true, Some(500)));
    seat.stream("The whole answer.");
    assert_snapshot!(seat.screen(), @"
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit

      Half an ans
    · the reply above was cut off and is discarded
    · the connection broke; trying again in 0.5 s

      The whole answer.
    ── answering 0 s · Esc interrupts ──────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
}

#[test]
fn of_replies_that_are_cut_off_in_a_row_the_first_stays() {
    let mut seat = Seat::new(60, 16);
    seat.keys("hi\n");
    for _ in 0..3 {
        seat.stream("Half an answer");
        seat.log(failed("the connection broke", true, Some(500)));
    }
    let screen = seat.screen();
    assert_eq!(screen.matches("Half an answer").count(), 1, "{screen}");
    assert_eq!(screen.matches("trying again in 0.5 s").count(), 1, "{screen}");
    assert!(screen.contains("· replies were cut off 3 times in a row and are discarded"), "{screen}");
    seat.stream("The whole answer.");
    assert!(seat.screen().contains("The whole answer."), "{}", seat.screen());
}

#[test]
fn a_remedy_is_no_louder_than_other_text() {
    let mut seat = Seat::new(60, 16);
    seat.keys("hi\n");
    seat.fail_turn(EndReason::Provider, "the API answered 401: no\n  hint: check the key");
    let style = |seat: &Seat, text: &str| {
        let y = (0..16)
            .find(|y| seat.row(*y).contains(text))
            .unwrap_or_else(|| panic!("{text}: {}", seat.screen()));
        let cell = seat.buffer()[(4, u16::try_from(y).unwrap())].clone();
        (cell.fg, cell.modifier)
    };
    assert!(style(&seat, "401").1.contains(Modifier::BOLD));
    assert_eq!(style(&seat, "hint: check the key"), (ratatui::style::Color::Reset, Modifier::empty()));
}

/// Returns the rows of two commands. `order` lists the begins (`b`) and ends (`e`) of the commands by their indices.
fn two_commands(outputs: [&str; 2], order: &[(usize, char)]) -> Vec<String> {
    let mut seat = Seat::new(60, 24);
    seat.keys("hi\n");
    for (at, does) in order {
        let id = u64::try_from(*at).unwrap() + 1;
        match does {
            'b' => seat.call(id, "shell_exec", &json!({"command": format!("command {at}")})),
            _ => seat.finish(id, ToolCallStatus::Completed, &format!("{}[exit code 0, 0.0 s]", outputs[*at])),
        }
    }
    seat.end_turn(EndReason::Done);
    let rows: Vec<_> = (0..24).map(|y| seat.row(y)).collect();
    let first = rows.iter().position(|row| row.contains("command 0")).unwrap();
    rows.into_iter().skip(first).take_while(|row| !row.starts_with("done")).collect()
}

#[test]
fn a_call_below_output_stands_apart() {
    let in_turn = [(0, 'b'), (0, 'e'), (1, 'b'), (1, 'e')];
    let together = [(0, 'b'), (1, 'b'), (0, 'e'), (1, 'e')];
    let crossed = [(0, 'b'), (1, 'b'), (1, 'e'), (0, 'e')];
    for order in [in_turn, together, crossed] {
        let with_output = ["✓ run command 0", "  a", "", "✓ run command 1", "  b", ""];
        assert_eq!(two_commands(["a\n", "b\n"], &order), with_output, "{order:?}");
        assert_eq!(two_commands(["", ""], &order), ["✓ run command 0", "✓ run command 1"], "{order:?}");
    }
}

#[test]
fn every_part_of_a_void_reply_is_crossed_out_and_the_next_attempt_is_counted_down_to() {
    let mut seat = Seat::new(60, 16);
    seat.keys("hi\n");
    seat.stream("First half");
    seat.core(UiEventKind::ThinkingDelta { text: "a thought".to_owned() });
    seat.stream("Second half");
    seat.log(failed("the reply was cut", true, Some(2_500)));
    let crossed_out = |seat: &Seat, text: &str| {
        let y = (0..16)
            .find(|y| seat.row(*y).contains(text))
            .unwrap_or_else(|| panic!("{text}: {}", seat.screen()));
        let row = (0..60).map(|x| seat.buffer()[(x, u16::try_from(y).unwrap())].clone());
        row.filter(|cell| cell.symbol() != " ").all(|cell| cell.modifier.contains(Modifier::CROSSED_OUT))
    };
    assert!(crossed_out(&seat, "First half") && crossed_out(&seat, "Second half"), "{}", seat.screen());
    assert!(!crossed_out(&seat, "is discarded"));
    assert!(seat.screen().contains("── trying again in 3 s · Esc interrupts ─"), "{}", seat.screen());
    assert_eq!(seat.tick(), Some(Duration::from_millis(500)));
    seat.wait(500);
    assert!(seat.screen().contains("── trying again in 2 s · "), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    seat.press(KeyCode::Esc);
    assert!(seat.told().contains(&UserActionKind::Agent(AgentAction::Interrupt)));
}

#[test]
fn thinking_between_texts_stands_between_them() {
    let mut seat = Seat::new(60, 14);
    for n in 1..3 {
        seat.core(UiEventKind::ThinkingDelta { text: format!("thought {n}") });
        seat.stream(&format!("text {n}"));
    }
    let content = vec![serde_json::value::to_raw_value(&json!({"type": "text", "text": "text 1"})).unwrap()];
    let message = |content| AssistantMessage {
        message_id: "m".to_owned(),
        model: "m".to_owned(),
        content,
        stop_reason: "end_turn".to_owned(),
        usage: TokenUsage::default(),
        estimated: false,
        cost_usd: None,
    };
    seat.log(EventKind::AssistantMessage(message(content.clone())));
    seat.press(KeyCode::Esc);
    seat.keys("t");
    let lines = |seat: &Seat| seat.screen().lines().skip(3).take(7).collect::<Vec<_>>().join("\n");
    assert_snapshot!(lines(&seat), @"
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit
    ┊ thought 1

      text 1
    ┊ thought 2
    ");
    let mut seat = Seat::new(60, 14);
    seat.log(EventKind::AssistantMessage(message(content)));
    assert!(seat.screen().contains("  text 1"), "what did not stream is shown when it is whole");
}

#[test]
fn nothing_ticks_when_nothing_happens() {
    let mut seat = Seat::new(80, 24);
    assert_eq!(seat.tick(), None);
    seat.keys("hi\n");
    seat.wait(300);
    assert_eq!(seat.tick().unwrap().as_millis(), 700, "the seconds of the turn");
    seat.end_turn(EndReason::Done);
    assert_eq!(seat.tick(), None);
    seat.ask_command("ls");
    assert_eq!(seat.tick().unwrap().as_millis(), 300, "the moment from which keys count");
    seat.wait(300);
    assert_eq!(seat.tick().unwrap().as_millis(), 239_700, "the last minute");
    seat.send(Msg::CoreGone);
    assert_eq!(seat.tick(), None);
}

#[test]
fn a_summary_at_rest_is_a_turn_and_two_lines() {
    let mut seat = Seat::new(80, 12);
    seat.log(EventKind::CompactionStarted(CompactionStarted {
        cause: CompactionCause::Request,
        tokens: 40_000,
        window: 1_000_000,
    }));
    assert!(seat.tick().is_some(), "it shows that something goes on");
    seat.log(EventKind::ContextCompacted(ContextCompacted {
        cause: CompactionCause::Request,
        summary: SummaryFrom::Conversation,
        tokens_before: 40_000,
        tokens_after: 3_000,
        usage: TokenUsage::default(),
        cost_usd: None,
        first_message: vec!["never shown".to_owned()],
    }));
    seat.end_turn(EndReason::Done);
    assert!(seat.tick().is_none());
    assert_snapshot!(seat.screen(), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit
    · as you asked: the conversation is summarised (about 40.0k of 1.0M tokens)
    · a new context continues with the model's summary (about 40.0k → 3.0k tokens)
    done · 10.5k in, 85% cached, 456 out, $0.032 · 3.4 s


    ────────────────────────────────────────────────────────────────────────────────
    ›
     INSERT  EXECUTE · ask · net off · ↑10.5k ↓456/↑10.5k ↓456 · read-only
    ");
}
