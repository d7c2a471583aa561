use insta::assert_snapshot;
use protocol::cost::{Price, Prices, Rates};
use protocol::event::EventKind;

use super::script::{Script, config, error, file, read, text};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, Effect, EndReason, RunLimits};

#[test]
fn steps_are_bounded_and_the_last_calls_keep_their_results() {
    let mut script = Script::limited(RunLimits { max_steps: Some(2), max_tokens: None, max_usd: None });
    script.user("go").reply(1, &[read("a", "a")], StopReason::ToolUse).outcome(1, file("x\n"));
    script.reply(2, &[read("b", "b")], StopReason::ToolUse).lines();
    script.outcome(2, file("y\n"));
    assert_snapshot!(script.lines(), @r#"
    log finished 2 b Completed "     1\ty\n" by Worker
    finish step_limit text="" steps=2 tokens=230 message=Some("the limit of 2 steps is reached")
    "#);
}

#[test]
fn answer_within_the_last_step_is_done() {
    let mut script = Script::limited(RunLimits { max_steps: Some(1), max_tokens: Some(1), max_usd: None });
    script.user("go").reply(1, &[text("ok")], StopReason::EndTurn);
    assert!(script.lines().contains("finish done"));
}

#[test]
fn tokens_are_bounded() {
    let mut script = Script::limited(RunLimits { max_steps: None, max_tokens: Some(115), max_usd: None });
    script.user("go").reply(1, &[read("a", "a")], StopReason::ToolUse).outcome(1, file("x\n"));
    assert!(script.lines().contains("finish token_limit"));
}

fn dollar_a_reply() -> Prices {
    let free = Price::default();
    let input = Price::from_micros(100_000_000_000);
    let rates = Rates { input, output: free, cache_write_5m: free, cache_write_1h: free, cache_read: free };
    Prices { rates, long: None }
}

#[test]
fn money_is_bounded_and_what_is_spent_is_told() {
    let limits = RunLimits { max_usd: "1.50".parse().ok(), ..RunLimits::default() };
    let mut script = Script::with(AgentConfig { limits, prices: Some(dollar_a_reply()), ..config() });
    script.user("go").reply(1, &[read("a", "a")], StopReason::ToolUse).outcome(1, file("x\n"));
    // A failed attempt has no token count, so that no cost is added.
    script.failed(2, error("connection", true)).timer(1);
    script.reply(3, &[read("b", "b")], StopReason::ToolUse).lines();
    script.outcome(2, file("y\n"));
    assert_snapshot!(script.lines(), @r#"
    log finished 2 b Completed "     1\ty\n" by Worker
    finish cost_limit text="" steps=2 tokens=230 message=Some("the limit of $1.50 is reached: the requests so far cost $2.00")
    "#);
    let costs: Vec<_> = script.effects.iter().filter_map(cost_of_reply).collect();
    assert_eq!(costs, ["$1.00", "$1.00"]);
}

fn cost_of_reply(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Log { kind: EventKind::AssistantMessage(message), .. } => Some(message.cost_usd?.to_string()),
        _ => None,
    }
}

#[test]
fn a_model_without_a_price_costs_nothing_that_is_told() {
    let mut script = Script::new();
    script.user("go").reply(1, &[text("ok")], StopReason::EndTurn);
    assert!(script.effects.iter().find_map(cost_of_reply).is_none());
    let end = script.effects.iter().find_map(|effect| match effect {
        Effect::Finish(end) => Some(end.cost),
        _ => None,
    });
    assert_eq!(end, Some(None));
}

#[test]
fn every_turn_has_the_whole_budget() {
    let mut script = Script::limited(RunLimits { max_steps: Some(1), max_tokens: None, max_usd: None });
    script.user("one").reply(1, &[text("1")], StopReason::EndTurn);
    script.user("two").reply(2, &[text("2")], StopReason::EndTurn);
    assert_eq!(script.lines().matches("finish done").count(), 2);
}

#[test]
fn every_reason_has_its_exit_code_and_its_own_word() {
    let codes = EndReason::ALL.map(|reason| format!("{} {}", reason.as_str(), reason.exit_code()));
    assert_snapshot!(codes.join(" · "), @"done 0 · gave_up 3 · nothing_said 3 · call_as_text 3 · schema_unmet 3 · step_limit 3 · token_limit 3 · cost_limit 3 · time_limit 3 · refusal 3 · context_full 3 · denied 4 · aborted 4 · provider_error 6 · interrupted 130 · closed 0 · terminated 143 · hung_up 129 · no_sandbox 5 · internal_error 1");
}
