use insta::assert_snapshot;

use super::script::{Script, file, read, text};
use crate::core::{EndReason, RunLimits};
use crate::provider::StopReason;

#[test]
fn steps_are_bounded_and_the_last_calls_keep_their_results() {
    let mut script = Script::limited(RunLimits { max_steps: Some(2), max_tokens: None });
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
    let mut script = Script::limited(RunLimits { max_steps: Some(1), max_tokens: Some(1) });
    script.user("go").reply(1, &[text("ok")], StopReason::EndTurn);
    assert!(script.lines().contains("finish done"));
}

#[test]
fn tokens_are_bounded() {
    let mut script = Script::limited(RunLimits { max_steps: None, max_tokens: Some(115) });
    script.user("go").reply(1, &[read("a", "a")], StopReason::ToolUse).outcome(1, file("x\n"));
    assert!(script.lines().contains("finish token_limit"));
}

#[test]
fn every_turn_has_the_whole_budget() {
    let mut script = Script::limited(RunLimits { max_steps: Some(1), max_tokens: None });
    script.user("one").reply(1, &[text("1")], StopReason::EndTurn);
    script.user("two").reply(2, &[text("2")], StopReason::EndTurn);
    assert_eq!(script.lines().matches("finish done").count(), 2);
}

#[test]
fn every_reason_has_its_exit_code_and_its_own_word() {
    let codes = EndReason::ALL.map(|reason| format!("{} {}", reason.as_str(), reason.exit_code()));
    assert_snapshot!(codes.join(" · "), @"done 0 · gave_up 3 · step_limit 3 · token_limit 3 · time_limit 3 · refusal 3 · context_full 3 · denied 4 · aborted 4 · provider_error 6 · interrupted 130 · closed 0 · terminated 143 · no_sandbox 5 · internal_error 1");
}
