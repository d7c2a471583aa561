use crossterm::event::KeyCode;
use insta::assert_snapshot;
use protocol::event::{Account, AssistantMessage, EndReason, EventKind, ModelChanged, TokenUsage};
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};
use serde_json::value::RawValue;
use tui::{Action, Copied, Start};

use crate::seat::{Seat, start};
use crate::tree;

pub(crate) fn reply(text: &str) -> EventKind {
    let block = serde_json::json!({ "type": "text", "text": text }).to_string();
    EventKind::AssistantMessage(AssistantMessage {
        message_id: "m".to_owned(),
        model: "m".to_owned(),
        content: vec![RawValue::from_string(block).unwrap()],
        stop_reason: "end_turn".to_owned(),
        usage: TokenUsage { input: 1_200, output: 30, ..TokenUsage::default() },
        estimated: false,
        cost_usd: "0.5".parse().ok(),
    })
}

fn copied(seat: &mut Seat) -> Vec<(Copied, String)> {
    let actions = std::mem::take(&mut seat.actions);
    let copied = actions.into_iter().filter_map(|action| match action {
        Action::Copy { what, text } => Some((what, text)),
        _ => None,
    });
    copied.collect()
}

#[test]
fn the_last_answer_its_last_code_and_the_found_line_are_copied() {
    let mut seat = Seat::new(60, 20);
    seat.press(KeyCode::Esc);
    seat.slowly("y");
    assert!(seat.screen().contains("there is no answer yet to copy"), "{}", seat.screen());
    seat.log(reply("One **bold** word.\n\n```sh\nmake\n```\n\n```sh\n\tmake test\u{1b}[2J\n```\n"));
    seat.slowly("yY");
    let whole = "One **bold** word.\n\n```sh\nmake\n```\n\n```sh\n\tmake test\\u{1b}[2J\n```\n";
    assert_eq!(
        copied(&mut seat),
        [(Copied::Answer, whole.to_owned()), (Copied::Code, "\tmake test\\u{1b}[2J\n".to_owned())]
    );
    seat.keys("/bold\n");
    seat.slowly("y");
    assert_eq!(copied(&mut seat), [(Copied::Line, "One bold word.".to_owned())]);
    seat.log(reply("No code."));
    seat.slowly("Y");
    assert_eq!(copied(&mut seat), []);
    assert!(seat.screen().contains("the last answer has no code to copy"), "{}", seat.screen());
}

#[test]
fn clear_and_model_are_told_to_the_first_agent_and_cost_is_shown() {
    let mut seat = Seat::new(60, 24);
    seat.keys(":clear\n:model other\n:model\n");
    assert_eq!(
        seat.told(),
        [UserActionKind::Agent(AgentAction::Clear), UserActionKind::SetModel { model: "other".to_owned() }]
    );
    seat.press(KeyCode::Esc);
    let changed = ModelChanged {
        from: "claude-opus-4-5".to_owned(),
        to: "other".to_owned(),
        new_context: false,
        window: Some(10_000),
    };
    seat.log(EventKind::ModelChanged(changed));
    seat.keys("go\n");
    seat.log(reply("Yes."));
    seat.keys(":cost\n");
    let screen = seat.screen();
    let rows: Vec<_> =
        screen.lines().skip_while(|row| !row.starts_with("tokens and money")).take(3).collect();
    assert_snapshot!(rows.join("\n"), @r"
    tokens and money of this session
      all agents    1.2k in, 0% cached, 30 out, $0.50
      context       13% of the model's window
    ");
    seat.end_turn(EndReason::Done);
}

#[test]
fn what_a_plan_costs_beside_an_agent_that_rests_is_in_the_turn_and_in_the_whole() {
    let mut seat = Seat::new(80, 24);
    seat.keys("go\n");
    seat.log(reply("Yes."));
    seat.end_turn(EndReason::Done);
    tree::spawn(&mut seat, "1.1", "plan it", &[]);
    tree::log(&mut seat, "1.1", reply("Two steps."));
    tree::log(&mut seat, "1.1", reply("Three steps."));
    assert!(seat.row(23).contains(" · ↑12.9k ↓516/↑12.9k ↓516 · "), "{}", seat.row(23));
    seat.keys(":cost\n");
    let screen = seat.screen();
    let rows: Vec<_> =
        screen.lines().skip_while(|row| !row.starts_with("tokens and money")).take(4).collect();
    assert_snapshot!(rows.join("\n"), @r"
    tokens and money of this session
      all agents    12.9k in, 69% cached, 516 out, $1.03
        agent 1     10.5k in, 85% cached, 456 out, $0.032
        agent 1.1   2.4k in, 0% cached, 60 out, $1.00
    ");
    let before = |agent: &str, input| {
        (agent.into(), Account::of(TokenUsage { input, ..TokenUsage::default() }, "1".parse().ok()))
    };
    seat.core(UiEventKind::SpentBefore { accounts: vec![before("1", 7), before("1.1.1", 5)] });
    seat.keys(":clear\n:cost\n");
    let screen = seat.screen();
    let rows: Vec<_> = screen.lines().filter(|row| row.contains(" in, ")).collect();
    assert_snapshot!(rows[rows.len() - 4..].join("\n"), @r"
    all agents    2.4k in, 0% cached, 60 out, $3.00
      agent 1     7 in, 0% cached, 0 out, $1.00
      agent 1.1   2.4k in, 0% cached, 60 out, $1.00
      agent 1.1.1 5 in, 0% cached, 0 out, $1.00
    ");
}

#[test]
fn plain_keys_have_no_normal() {
    let mut seat = Seat::from(Start { is_plain: true, ..start((80, 20)) });
    assert!(!seat.screen().contains("NORMAL"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains("Esc: nothing to stop"), "{}", seat.screen());
    seat.keys("hi?jk");
    assert!(seat.screen().contains("› hi?jk") && seat.screen().contains(" INSERT "), "{}", seat.screen());
    seat.ctrl('c');
    seat.keys(":agents\n");
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" INSERT "), "{}", seat.screen());
    seat.keys(":");
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" INSERT "), "{}", seat.screen());
    let mut seat = Seat::from(Start { is_plain: true, ..start((100, 250)) });
    seat.keys(":help\n");
    assert!(!seat.screen().contains("keys in NORMAL") && seat.screen().contains("keys in INSERT"));
    seat.press(KeyCode::Esc);
    seat.log(reply(&"a line\n\n".repeat(60)));
    seat.resize(80, 20);
    seat.press(KeyCode::PageUp);
    assert!(seat.screen().contains("lines below - End to follow"), "{}", seat.screen());
    seat.press(KeyCode::End);
    assert!(!seat.screen().contains("lines below"), "{}", seat.screen());
}

#[test]
fn a_model_that_nothing_knows_is_refused_unless_it_is_forced() {
    let mut seat = Seat::new(100, 24);
    seat.keys(":model claude-opos-4-5\n");
    assert_eq!(seat.told(), []);
    let page = |seat: &Seat| seat.screen().lines().take(4).collect::<Vec<_>>().join("\n");
    assert_snapshot!(page(&seat), @"
    unknown model claude-opos-4-5; choose a model
    ▸ claude-opus-4-5    200k  $5 in, $25 out · now
      claude-haiku-5-5     1M  $1 in, $5 out
      claude-opos-4-5       ?  as typed; window and price unknown
    ");
    seat.keys("G\n");
    let told = |name: &str| [UserActionKind::SetModel { model: name.to_owned() }];
    assert_eq!(seat.told(), told("claude-opos-4-5"));
    seat.keys(":model! claude-opos-4-5\n");
    assert_eq!(seat.told(), told("claude-opos-4-5"));
    seat.keys(":model house-7b\n");
    assert_eq!(seat.told(), told("house-7b"));
}

#[test]
fn the_models_are_listed_with_window_and_price_and_enter_chooses() {
    let mut seat = Seat::new(70, 12);
    let told = |name: &str| [UserActionKind::SetModel { model: name.to_owned() }];
    seat.keys(":model\n");
    assert_snapshot!(seat.screen(), @"
    models · context window · price of a million tokens
      other              128k  price unknown
      house-*             32k  price unknown
    ▸ claude-opus-4-5    200k  $5 in, $25 out · now
      claude-haiku-5-5     1M  $1 in, $5 out



    Enter choose  Esc close  j/k move
    ──────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    seat.keys("j\n");
    assert_eq!(seat.told(), told("claude-haiku-5-5"));
    seat.keys(":model\n\n");
    assert_eq!(seat.told(), []);
    assert!(seat.screen().contains("nothing changed: the model is claude-opus-4-5"), "{}", seat.screen());
    seat.keys(":model\ngj\n");
    assert!(seat.screen().contains(":model house-"), "{}", seat.screen());
    assert_eq!(seat.told(), []);
}

#[test]
fn money_that_was_known_stays_when_a_price_is_not() {
    let usage = TokenUsage { input: 1000, ..TokenUsage::default() };
    let reply = |cost_usd| {
        let EventKind::AssistantMessage(message) = reply("Yes.") else { unreachable!() };
        EventKind::AssistantMessage(AssistantMessage { usage, cost_usd, ..message })
    };
    let mut seat = Seat::new(130, 24);
    seat.log(reply("0.12".parse().ok()));
    assert!(seat.screen().contains("· $0.12 ·"), "{}", seat.screen());
    seat.log(reply(None));
    assert!(seat.screen().contains("· ≥ $0.12 ·"), "{}", seat.screen());
    seat.keys(":cost\n");
    assert!(seat.screen().contains("≥ $0.12 (the price of a part is not known)"), "{}", seat.screen());
}
