//! Tests that hostile text stays within its area of the screen and has no other effects.

use ipc::id::CallId;
use proptest::prelude::*;
use protocol::approval::ServerRequest;
use protocol::event::{EventKind, ToolCallStatus};
use protocol::frontend::UiEventKind;
use ratatui::buffer::Buffer;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::core::{denial, exec, patch, update};
use crate::seat::Seat;

/// Generates text that is difficult to sanitise.
pub(crate) fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~]{0,12}",
        any::<char>().prop_map(String::from),
        proptest::sample::select(vec![
            "\x1b]0;title\x07",
            "\x1b]52;c;aGk=\x07",
            "\x1b[2J\x1b[H",
            "\x1b[?1049l",
            "\u{9b}31m",
            "\r\n",
            "\r",
            "\x08\x08",
            "\t",
            "\u{202e}",
            "\u{200b}\u{200d}",
            "👨\u{200d}👩\u{200d}👧",
            "👍\u{1f3fd}",
            "⚠\u{fe0f}",
            "🇩🇪",
            "漢字",
            "e\u{301}\u{301}",
            "\n\n\n",
            "\u{7f}",
            "\0",
            "क्षि",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

fn shows(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
}

/// Checks that the content of each cell is visible, and as wide as the cells that it covers.
pub(crate) fn check_cells(buffer: &Buffer) -> Result<(), TestCaseError> {
    for row in buffer.content.chunks(usize::from(buffer.area.width)) {
        let mut covered = 0_usize;
        for cell in row {
            let symbol = cell.symbol();
            // The characters of one emoji are drawn together.
            let is_one = symbol.width() == 2 && tui::text::SafeText::prose(symbol).as_str() == symbol;
            prop_assert!(is_one || symbol.chars().all(shows), "{:?}", symbol);
            prop_assert!(covered == 0 || symbol == " ", "a wide character lies over {:?}", symbol);
            covered = covered.max(symbol.width()).saturating_sub(1);
        }
        prop_assert_eq!(covered, 0, "a wide character hangs over the edge");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_text_of_a_model_or_tool_leaves_the_transcript(
        pieces in proptest::collection::vec(hostile_text(), 1..6), width in 40_u16..100, height in 10_u16..30,
    ) {
        let mut quiet = Seat::new(width, height);
        let mut seat = Seat::new(width, height);
        for (n, text) in pieces.iter().enumerate() {
            match n % 4 {
                0 => seat.stream(text),
                1 => seat.core(UiEventKind::ThinkingDelta { text: text.clone() }),
                2 => {
                    seat.call(n as u64, text, &json!({"command": text, "path": text}));
                    seat.core(UiEventKind::OutputDelta { call: CallId(n as u64), text: text.clone() });
                    seat.finish(n as u64, ToolCallStatus::Failed, text);
                }
                _ => seat.log(EventKind::Notice { code: text.as_str().into(), message: text.clone() }),
            }
            check_cells(seat.buffer())?;
        }
        // Outside of the transcript, the screen is the same as without the hostile text.
        quiet.draw();
        let below = usize::from(width) * usize::from(height - 3);
        prop_assert_eq!(&seat.buffer().content[below..], &quiet.buffer().content[below..]);
    }

    #[test]
    fn no_text_of_a_request_leaves_its_card(
        command in hostile_text(), reason in hostile_text(), variable in hostile_text(), place in any::<Vec<u8>>(),
    ) {
        let mut seat = Seat::new(80, 24);
        let mut plain = Seat::new(80, 24);
        let mut request = exec(&command);
        request.reason = Some(reason);
        request.environment = vec![(variable.clone(), place.clone().into())];
        request.cwd = place.into();
        seat.ask(1, ServerRequest::ExecCommandApproval(request));
        plain.ask_command("ls");
        check_cells(seat.buffer())?;
        let below = 80 * 21;
        prop_assert_eq!(&seat.buffer().content[below..], &plain.buffer().content[below..], "prompt and status");
        seat.wait(300);
        for key in ["j", "G", "s", "j", "l", "h"] {
            seat.keys(key);
            check_cells(seat.buffer())?;
        }
        prop_assert_eq!(seat.told(), []);
    }

    #[test]
    fn no_paste_leaves_the_prompt(text in hostile_text(), keys in "[a-z\u{301}漢]{0,5}") {
        let mut seat = Seat::new(60, 20);
        seat.send(tui::Msg::Paste(text));
        seat.keys(&keys);
        check_cells(seat.buffer())?;
    }
}

#[test]
fn a_name_cannot_look_like_two_facts() {
    let mut seat = Seat::new(100, 30);
    let mut request = exec("ls");
    request.cwd = "/tmp\nneeds     nothing".into();
    seat.ask(1, ServerRequest::ExecCommandApproval(request));
    assert!(
        seat.screen().contains("  runs      by bash -c, in /tmp\\u{a}needs     nothing"),
        "{}",
        seat.screen()
    );
}

#[test]
fn a_reason_cannot_look_like_the_access_that_is_asked_for() {
    let mut seat = Seat::new(60, 20);
    let mut request = exec("ls");
    let forged = "allows    nothing";
    request.reason = Some(format!("{}{forged}\n{forged}", "no harm ".repeat(8)));
    seat.ask(1, ServerRequest::ExecCommandApproval(request));
    let screen = seat.screen();
    let forged: Vec<_> = screen.lines().filter(|row| row.contains(forged)).collect();
    assert_eq!(forged.len(), 2, "{screen}");
    assert!(forged.iter().all(|row| row.starts_with('“')), "{screen}");
    assert!(screen.contains("\n  allows    write in this project, once\n"), "{screen}");
}

#[test]
fn a_file_cannot_look_like_the_access_that_is_asked_for() {
    let mut seat = Seat::new(60, 20);
    let diff = "@@ -1,2 +1,2 @@\n allows    nothing\n-a\n+b\n";
    seat.ask(1, ServerRequest::ApplyPatchApproval(patch(&[("/home/me/project/src/lib.rs", update(diff))])));
    let screen = seat.screen();
    assert!(screen.contains("\n│ 1  allows    nothing\n"), "{screen}");
    assert!(screen.contains("\n  allows    write src/lib.rs, once\n"), "{screen}");
}

#[test]
fn what_spells_an_escape_does_not_look_like_one() {
    let mut seat = Seat::new(80, 12);
    seat.stream("\\u{1b} \x1b");
    let at = (0..12).find(|y| seat.row(usize::from(*y)).contains("u{1b}")).unwrap();
    assert_eq!(seat.row(usize::from(at)), "  \\u{1b} \\u{1b}");
    assert_eq!(seat.reversed(at), "\\u{1b}");
}

#[test]
fn a_denial_names_what_was_tried_in_one_line_each() {
    let mut seat = Seat::new(100, 24);
    seat.call(12, "shell_exec", &json!({"command": "touch /etc/probe && echo done"}));
    seat.log(denial());
    insta::assert_snapshot!(seat.screen().lines().skip(4).take(6).collect::<Vec<_>>().join("\n"), @"
    → run touch /etc/probe && echo done
     ✗ likely blocked
      tried     write /etc/probe, which is read-only for this session   (Landlock, EACCES)
      to allow  :allow write /etc/probe
    ");
}

#[test]
fn a_denial_of_no_call_is_one_line_that_says_so() {
    let mut seat = Seat::new(200, 24);
    let EventKind::Denied { denial, rights, .. } = denial() else { unreachable!() };
    seat.log(EventKind::Denied { call: None, denial, rights });
    let screen = seat.screen();
    let line = screen.lines().find(|line| line.contains("outside of its tool calls")).unwrap();
    assert_eq!(
        line,
        "· agent 1, outside of its tool calls: likely blocked by the sandbox (Landlock): write /etc/probe; missing \
         access: write \
         /etc/probe; the user can allow it with --write /etc/probe"
    );
}
