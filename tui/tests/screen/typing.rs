//! Tests that letters typed in modes where each is a command, or over a request, become text and answer no request.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ipc::rights::{Network, RightsChange};
use proptest::prelude::*;
use protocol::approval::{ApprovalMode, ReviewDecision, ServerRequest};
use protocol::event::{EndReason, EventKind};
use protocol::frontend::{AgentAction, UserActionKind};
use tui::{Action, Msg};

use crate::plan_cards::{asked, params};
use crate::seat::Seat;

fn typed(seat: &mut Seat, keys: &str, gap: u64) {
    for key in keys.chars() {
        seat.wait(gap);
        match key {
            '\x1b' => seat.press(KeyCode::Esc),
            key => seat.keys(&key.to_string()),
        }
    }
}

/// Checks that a message typed over a request has no more effect than to open a page of the request.
#[test]
fn a_word_on_a_card_gives_nothing_beyond_once() {
    for message in ["python -m pytest", "type it", "try again", "sync", "spy", "stay"] {
        for gap in [0, 80, 150, 290] {
            let mut seat = Seat::new(100, 30);
            let mut request = crate::core::exec("cargo test");
            request.turn = Some(crate::whole_turn::access());
            request.in_project = Some(crate::in_project::kept());
            seat.ask(1, ServerRequest::ExecCommandApproval(request));
            seat.wait(1000);
            typed(&mut seat, message, gap);
            assert_eq!(seat.told(), [], "{message:?} every {gap} ms: {}", seat.screen());
        }
    }
}

fn prompts(seat: &mut Seat) -> Vec<String> {
    let told = seat.told().into_iter().filter_map(|kind| match kind {
        UserActionKind::Agent(AgentAction::Prompt { text, .. }) => Some(text),
        _ => None,
    });
    told.collect()
}

/// An idle session with text to read, to search and to rewind.
fn after_a_turn() -> Seat {
    let mut seat = Seat::new(80, 24);
    seat.keys("hello\n");
    seat.log(EventKind::UserMessage { text: "hello".to_owned(), images: vec![] });
    seat.log(crate::copy::reply(&"an answer with words\n\n".repeat(60)));
    seat.end_turn(EndReason::Done);
    seat.wait(1000);
    seat.actions.clear();
    seat
}

#[test]
fn a_message_typed_in_normal_reaches_the_model_whole() {
    for message in [
        "please add a test for it",
        "paint",
        "yes, it is",
        "no",
        "join",
        "Add it",
        "[x] done",
        "oops",
        "very nice",
        "(see above)",
        "Via {a}",
    ] {
        for gap in [0, 80, 300, 500] {
            let mut seat = after_a_turn();
            typed(&mut seat, &format!("\x1b{message}\n"), gap);
            assert_eq!(prompts(&mut seat), [message], "{gap} ms");
        }
    }
}

#[test]
fn a_run_that_becomes_text_leaves_the_view_as_it_was() {
    for text in ["gone", "kt", "oh", "nNx", "tt", "ready", "yy", "vy", "Vjy", "{kv"] {
        let mut seat = after_a_turn();
        seat.press(KeyCode::Esc);
        seat.wait(600);
        let before = seat.screen();
        typed(&mut seat, text, 200);
        let rows = |screen: &str| screen.lines().take(21).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rows(&seat.screen()), rows(&before), "{text}");
        assert_eq!(seat.row(22), format!("› {text}"));
        seat.wait(2000);
        assert_eq!(seat.actions, [], "{text}: nothing was done beyond the view");
    }
}

#[test]
fn a_key_alone_is_its_command_and_motions_stay_motions() {
    let mut seat = after_a_turn();
    seat.press(KeyCode::Esc);
    typed(&mut seat, "kkjgGk", 100);
    assert!(seat.screen().contains(" NORMAL ") && seat.row(22) == "›", "{}", seat.screen());
    seat.wait(600);
    seat.keys("y");
    assert_eq!(seat.actions, [], "letters may follow");
    assert_eq!(seat.tick().unwrap().as_millis(), 501);
    seat.wait(501);
    assert!(matches!(&seat.actions[..], [Action::Copy { .. }]), "{:?}", seat.actions);
    seat.actions.clear();
    seat.keys("y");
    seat.press(KeyCode::PageUp);
    assert!(matches!(&seat.actions[..], [Action::Copy { .. }]), "no letter follows: {:?}", seat.actions);
    seat.wait(600);
    typed(&mut seat, "i", 600);
    typed(&mut seat, "and more", 501);
    assert_eq!(seat.row(22), "› and more");
}

#[test]
fn no_letter_of_a_message_takes_anything_back_or_stops_anything() {
    let mut seat = after_a_turn();
    typed(&mut seat, "\x1b\x1b", 200);
    assert!(seat.screen().contains(" REWIND "), "{}", seat.screen());
    typed(&mut seat, "fly to the moon by try\n", 200);
    assert_eq!(prompts(&mut seat), ["fly to the moon by try"]);
    for view in ["log", "rewind", "agents"] {
        let mut seat = after_a_turn();
        seat.keys(&format!(":{view}\n"));
        seat.actions.clear();
        typed(&mut seat, "quickly fix it\n", 150);
        assert_eq!(prompts(&mut seat), ["quickly fix it"], "{view}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_message_lacks_a_letter_wherever_esc_was_pressed(
        runs in proptest::collection::vec(("[a-zA-Z]{1,7}[a-fh-il-mo-zA-FH-MO-Z]", 0..3usize), 1..6),
        gaps in proptest::collection::vec(0u64..=500, 60),
    ) {
        let mut seat = after_a_turn();
        let mut gaps = gaps.into_iter().cycle();
        let mut letters = String::new();
        for (run, escapes) in &runs {
            letters.push_str(run);
            for key in run.chars().chain("\x1b".chars().cycle().take(*escapes)) {
                typed(&mut seat, &key.to_string(), gaps.next().unwrap_or_default());
            }
        }
        // In Normal mode the key first leads to the prompt.
        typed(&mut seat, "\n\n", 600);
        prop_assert_eq!(prompts(&mut seat), [letters]);
    }
}

#[test]
fn a_command_on_a_request_is_carried_out_and_answers_nothing() {
    let cards: [fn() -> Seat; 3] = [
        || {
            let mut seat = Seat::new(80, 24);
            seat.ask_command("ls");
            seat
        },
        || asked((80, 24), params()),
        || crate::denials::asked((80, 24), crate::denials::in_project()),
    ];
    let net = || {
        UserActionKind::Agent(AgentAction::SetRights {
            change: RightsChange::Network { net: Network::On, reach: None },
        })
    };
    for card in cards {
        for sign in [":", "/"] {
            for (line, told) in [
                ("net on", net()),
                ("mode auto", UserActionKind::Agent(AgentAction::SetMode { mode: ApprovalMode::Auto })),
            ] {
                let mut seat = card();
                seat.wait(400);
                seat.actions.clear();
                typed(&mut seat, &format!("{sign}{line}"), 120);
                assert!(seat.screen().contains(&format!(":{line}")), "it is seen\n{}", seat.screen());
                typed(&mut seat, "\n", 120);
                assert_eq!(seat.told(), [told], "{}", seat.screen());
                assert!(
                    seat.screen().contains(" APPROVAL ")
                        || seat.screen().contains("too early")
                        || !seat.screen().contains("COMMAND")
                );
            }
        }
        let mut seat = card();
        seat.wait(400);
        seat.actions.clear();
        typed(&mut seat, ":q\n", 120);
        assert_eq!(seat.actions, [Action::Quit]);
        let mut seat = card();
        seat.wait(400);
        seat.actions.clear();
        typed(&mut seat, ":net\x1b", 120);
        assert_eq!(seat.told(), [], "Esc leaves the line, and the request stands");
        typed(&mut seat, "n", 120);
        assert_eq!(seat.told(), [], "it was not there long enough");
        typed(&mut seat, "n", 400);
        assert_eq!(seat.told().len(), 1);
    }
    let mut seat = asked((80, 24), params());
    typed(&mut seat, ":edit-plan\n", 120);
    assert!(matches!(&seat.actions[..], [Action::EditPlan { .. }]), "{:?}", seat.actions);
}

#[test]
fn a_view_that_was_opened_on_a_request_is_closed_by_esc_and_the_request_stands() {
    for view in ["log", "agents"] {
        let mut seat = asked((80, 24), params());
        typed(&mut seat, &format!(":{view}\n"), 120);
        assert!(!seat.screen().contains("Execute this plan?"), "{view}\n{}", seat.screen());
        seat.actions.clear();
        typed(&mut seat, "\x1b", 400);
        assert!(seat.screen().contains("Execute this plan?"), "{view}\n{}", seat.screen());
        assert_eq!(seat.actions, [], "{view}");
    }
}

#[test]
fn letters_without_a_meaning_on_a_request_begin_no_answer() {
    let mut seat = crate::denials::asked((80, 24), crate::denials::in_project());
    seat.wait(400);
    seat.actions.clear();
    // `o` would allow the denied access, and `n` would leave it denied.
    typed(&mut seat, "mod", 200);
    assert_eq!(seat.told(), []);
    assert!(seat.screen().contains("too early: d"), "{}", seat.screen());
    seat.wait(400);
    typed(&mut seat, "y", 0);
    assert!(seat.screen().contains("y does nothing here"), "{}", seat.screen());
    typed(&mut seat, "n", 400);
    assert_eq!(seat.told().len(), 1);
}

#[test]
fn a_key_in_the_first_moments_of_a_request_is_dropped_and_that_shows() {
    let mut seat = Seat::new(80, 24);
    seat.keys("go\n");
    seat.told();
    seat.wait(1000);
    seat.ask_command("ls");
    typed(&mut seat, "y", 200);
    assert_eq!(seat.told(), []);
    assert!(seat.screen().contains("too early: y") && seat.row(22) == "›", "{}", seat.screen());
    typed(&mut seat, "y", 400);
    assert_eq!(seat.told().len(), 1);
    assert!(!seat.screen().contains("too early") && seat.row(22) == "›", "{}", seat.screen());
}

#[test]
fn esc_leaves_a_page_of_a_request_before_it_denies() {
    for page in ["?", "s", "d", "e"] {
        let mut seat = Seat::new(80, 24);
        seat.ask_command("ls");
        seat.wait(400);
        let card = seat.screen();
        seat.keys(page);
        assert_ne!(seat.screen(), card, "{page}");
        for key in [
            KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
            KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        ] {
            seat.send(Msg::Key(key));
            assert_eq!(seat.screen(), card, "{page}");
            assert_eq!(seat.told(), [], "{page}");
            seat.keys(page);
        }
        seat.press(KeyCode::Esc);
        seat.press(KeyCode::Esc);
        let [UserActionKind::Answer { answer, .. }] = &seat.told()[..] else { panic!("{page}") };
        assert_eq!(answer.decision(), Some(&ReviewDecision::Abort), "{page}");
    }
}

#[test]
fn a_command_is_typed_from_each_view_too() {
    for view in ["log", "rewind", "agents", "help"] {
        let mut seat = after_a_turn();
        seat.keys(&format!(":{view}\n"));
        seat.actions.clear();
        typed(&mut seat, ":compact\n", 120);
        assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Compact)], "{view}");
    }
}
