use ipc::form::{FieldKind, FormChoice, FormField, TextFormat};
use ipc::id::{AgentId, ApprovalId, CallId};
use protocol::approval::{
    ApprovalAnswer, FormValue, FormValues, ReviewDecision, ServerAccess, ServerFormParams, ServerRequest,
};
use protocol::event::{ApprovalAnswered, DecidedBy, EventKind};
use protocol::frontend::UserActionKind;
use ratatui::crossterm::event::KeyCode;

use crate::seat::Seat;

fn field(name: &str, title: Option<&str>, required: bool, kind: FieldKind) -> FormField {
    let title = title.map(str::to_owned);
    FormField { name: name.to_owned(), title, about: String::new(), required, kind }
}

fn request(message: &str, fields: Vec<FormField>) -> ServerRequest {
    ServerRequest::ServerForm(ServerFormParams {
        conversation_id: "c".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        server: "tracker".to_owned(),
        tool: "create_issue".to_owned(),
        access: Some(ServerAccess { read: vec!["/p".into()], ..ServerAccess::default() }),
        message: message.to_owned(),
        fields,
        digest: "d5".to_owned(),
        timeout_ms: 300_000,
        reason: None,
    })
}

fn fields() -> Vec<FormField> {
    let choice =
        |value: &str, title: &str| FormChoice { value: value.to_owned(), title: Some(title.to_owned()) };
    let [least, most] = ["1", "5"].map(|bound| Some(bound.to_owned()));
    let default = Some("3".to_owned());
    vec![
        field(
            "mail",
            Some("Who reports it"),
            true,
            FieldKind::Text { format: Some(TextFormat::Email), least: None, most: Some(40), default: None },
        ),
        field("weight", None, true, FieldKind::Number { whole: true, least, most, default }),
        field("urgent", None, true, FieldKind::YesNo { default: Some(false) }),
        field(
            "kind",
            None,
            false,
            FieldKind::Choice { choices: vec![choice("b", "Bug"), choice("w", "Wish")], default: None },
        ),
    ]
}

fn asked() -> Seat {
    let mut seat = Seat::new(80, 34);
    seat.ask(1, request("Who reports the issue?", fields()));
    seat.wait(400);
    seat
}

fn decision(seat: &mut Seat) -> ReviewDecision {
    let told = seat.told();
    let [UserActionKind::Answer { id: ApprovalId(1), answer: ApprovalAnswer::Form(answer) }] = &told[..]
    else {
        panic!("{told:?}\n{}", seat.screen())
    };
    assert_eq!(answer.digest.as_deref(), Some("d5"));
    answer.decision.clone()
}

#[test]
fn a_card_names_the_server_its_access_its_words_and_every_field() {
    let screen = asked().screen();
    for line in [
        " Answer the MCP server tracker? ",
        "the MCP server tracker asks during the call of create_issue:",
        "Who reports the issue?",
        "Who reports it (mail address, at most 40 characters)",
        "weight (whole number, 1 to 5)",
        "urgent (yes or no)",
        "kind (one of 2, can stay empty)",
        "access    reads /p",
        "writes only the server's own files",
        "sends     these values to that server, for this call",
        "i fill in  y send  n decline",
    ] {
        assert!(screen.contains(line), "{line}\n{screen}");
    }
    let mut hostile = Seat::new(80, 30);
    let title = Some("Who\u{1b}[2J");
    hostile.ask(
        1,
        request("Go\u{202e} on?\u{1b}[2J", vec![field("a", title, true, FieldKind::YesNo { default: None })]),
    );
    hostile.wait(400);
    let screen = hostile.screen();
    assert!(screen.contains("\\u{202e}") && screen.contains("\\u{1b}[2J"), "{screen}");
}

#[test]
fn fields_are_filled_in_with_their_faults_in_place_and_sent() {
    let mut seat = asked();
    // A field without the required value is shown, and the form is not sent.
    seat.keys("y");
    assert!(seat.told().is_empty());
    assert!(seat.screen().contains("▸ Who reports it"), "{}", seat.screen());
    seat.keys("ada");
    assert!(seat.screen().contains("a mail address is needed"), "{}", seat.screen());
    seat.keys("@a.example");
    assert!(!seat.screen().contains("a mail address is needed"), "{}", seat.screen());
    seat.press(KeyCode::Tab);
    assert!(seat.screen().contains("▸ weight"), "{}", seat.screen());
    seat.press(KeyCode::Backspace);
    seat.keys("9");
    assert!(seat.screen().contains("at most 5"), "{}", seat.screen());
    seat.press(KeyCode::Backspace);
    seat.keys("4");
    seat.press(KeyCode::Down);
    seat.press(KeyCode::Left);
    seat.press(KeyCode::Enter);
    seat.press(KeyCode::Right);
    assert!(seat.screen().contains("Bug [b]"), "{}", seat.screen());
    seat.keys(" ");
    assert!(seat.screen().contains("Wish [w]"), "{}", seat.screen());
    assert!(seat.told().is_empty(), "a letter in a field answers nothing");
    seat.press(KeyCode::Enter);
    // Letters that were typed for the field.
    seat.keys("y");
    assert!(seat.told().is_empty());
    seat.wait(600);
    seat.keys("y");
    let text = |text: &str| FormValue::Text(text.to_owned());
    let values = FormValues::from([
        ("mail".to_owned(), text("ada@a.example")),
        ("weight".to_owned(), FormValue::Number(4.into())),
        ("urgent".to_owned(), FormValue::YesNo(true)),
        ("kind".to_owned(), text("w")),
    ]);
    assert_eq!(decision(&mut seat), ReviewDecision::Filled { values });
}

#[test]
fn several_values_are_marked_one_by_one() {
    let choice = |value: &str, title: Option<&str>| FormChoice {
        value: value.to_owned(),
        title: title.map(str::to_owned),
    };
    let choices = vec![choice("b", Some("Bug")), choice("w", None), choice("q", None)];
    let kind = FieldKind::Choices { choices, least: Some(1), most: Some(2), default: vec!["w".to_owned()] };
    let mut seat = Seat::new(80, 24);
    seat.ask(1, request("Which labels?", vec![field("labels", None, true, kind)]));
    seat.wait(400);
    let screen = seat.screen();
    assert!(screen.contains("labels (any of 3, 1 to 2)"), "{screen}");
    assert!(screen.contains("  [ ] Bug [b]") && screen.contains("  [x] w"), "{screen}");
    seat.keys("i");
    assert!(
        seat.screen().contains("› [ ] Bug [b]") && seat.screen().contains("Space marks"),
        "{}",
        seat.screen()
    );
    // Space selects a value, and the arrows move to another one.
    seat.keys(" ");
    seat.press(KeyCode::Left);
    seat.keys(" ");
    assert!(
        seat.screen().contains("› [x] q") && seat.screen().contains("choose at most 2"),
        "{}",
        seat.screen()
    );
    seat.press(KeyCode::Left);
    seat.keys(" ");
    assert!(
        seat.screen().contains("› [ ] w") && !seat.screen().contains("choose at most"),
        "{}",
        seat.screen()
    );
    seat.press(KeyCode::Enter);
    seat.wait(600);
    seat.keys("y");
    let list = FormValue::List(vec!["b".to_owned(), "q".to_owned()]);
    assert_eq!(
        decision(&mut seat),
        ReviewDecision::Filled { values: FormValues::from([("labels".to_owned(), list)]) }
    );
}

#[test]
fn declining_and_cancelling_send_nothing() {
    for (key, expected) in [("n", ReviewDecision::DENIED), ("\u{1b}", ReviewDecision::Cancelled)] {
        let mut seat = asked();
        match key {
            "\u{1b}" => seat.press(KeyCode::Esc),
            key => seat.keys(key),
        }
        assert_eq!(decision(&mut seat), expected);
    }
    // Esc in a field ends the editing of the field only.
    let mut seat = asked();
    seat.keys("i");
    seat.press(KeyCode::Esc);
    assert!(seat.told().is_empty());
}

#[test]
fn a_form_without_fields_is_a_confirmation() {
    let mut seat = Seat::new(80, 24);
    seat.ask(1, request("Delete the draft?", Vec::new()));
    seat.wait(400);
    assert!(seat.screen().contains("y yes  n decline"), "{}", seat.screen());
    seat.keys("i");
    seat.keys("y");
    assert_eq!(decision(&mut seat), ReviewDecision::Filled { values: FormValues::new() });
}

#[test]
fn the_line_about_an_answer_names_the_server() {
    for (decision, by, cause, line) in [
        (ReviewDecision::DENIED, DecidedBy::User, None, "the question of the MCP server tracker: declined"),
        (
            ReviewDecision::Filled { values: FormValues::new() },
            DecidedBy::User,
            None,
            "the question of the MCP server tracker: answered",
        ),
        (
            ReviewDecision::Cancelled,
            DecidedBy::Interrupted,
            Some("the call has ended"),
            "the question of the MCP server tracker: cancelled: the call has ended",
        ),
    ] {
        let mut seat = asked();
        let cause = cause.map(str::to_owned);
        let id = Some(ApprovalId(1));
        seat.log(EventKind::ApprovalAnswered(ApprovalAnswered {
            id,
            call: CallId(7),
            decision,
            by,
            cause,
            in_part: None,
        }));
        assert!(seat.screen().contains(line), "{}", seat.screen());
        assert!(!seat.screen().contains("call 7"), "{}", seat.screen());
    }
}
