use std::sync::Arc;

use serde_json::Value;

use super::script::{Script, call, config, text};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, AnswerCheck, RunLimits};

#[derive(Debug)]
struct Numbers;

impl AnswerCheck for Numbers {
    fn demand(&self) -> &'static str {
        "<demand>a number</demand>"
    }

    fn check(&self, reply: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(reply).map_err(|error| error.to_string())?;
        if value.is_number() { Ok(value) } else { Err("it is no number\nnor a digit".to_owned()) }
    }
}

fn asked(limits: RunLimits) -> Script {
    let mut script = Script::with(AgentConfig { answer: Some(Arc::new(Numbers)), limits, ..config() });
    script.user("count");
    script
}

/// Returns the lines of the log about ends of runs, and about answers that do not fit the schema.
fn told(script: &mut Script) -> String {
    let lines = script.lines();
    let told = lines.lines().filter(|line| line.starts_with("finish") || line.contains("answer does not"));
    told.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn an_answer_that_fits_ends_the_run_with_its_value() {
    let mut script = asked(RunLimits::default());
    assert!(script.last_messages().contains("<demand>a number</demand>"), "{}", script.last_messages());
    script.reply(1, &[text("7")], StopReason::EndTurn);
    insta::assert_snapshot!(told(&mut script), @r#"finish done text="7" steps=1 tokens=115 message=None"#);
    assert_eq!(script.output(), Some(Value::from(7)));
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_once_more_with_its_faults() {
    let mut script = asked(RunLimits::default());
    script.reply(1, &[text("\"seven\"")], StopReason::EndTurn);
    assert!(script.last_messages().contains("it is no number\\nnor a digit"), "{}", script.last_messages());
    script.reply(2, &[text("7")], StopReason::EndTurn);
    insta::assert_snapshot!(told(&mut script), @r#"
    log notice answer_misfit the answer does not fit the schema: it is no number; the model is asked once more by Supervisor
    log context bailiwick "Your answer does not fit the JSON Schema that it has to fit:\nit is no number\nnor a digit\nReply with the whole JSON value once more, corrected, and with nothing else." by Supervisor
    finish done text="7" steps=2 tokens=230 message=None
    "#);
    assert_eq!(script.output(), Some(Value::from(7)));
}

#[test]
fn a_second_answer_that_does_not_fit_ends_the_run_without_a_value() {
    let mut script = asked(RunLimits::default());
    script.reply(1, &[text("seven")], StopReason::EndTurn);
    script.reply(2, &[text("\"eight\"")], StopReason::EndTurn);
    insta::assert_snapshot!(told(&mut script), @r#"
    log notice answer_misfit the answer does not fit the schema: expected value at line 1 column 1; the model is asked once more by Supervisor
    log context bailiwick "Your answer does not fit the JSON Schema that it has to fit:\nexpected value at line 1 column 1\nReply with the whole JSON value once more, corrected, and with nothing else." by Supervisor
    finish schema_unmet text="\"eight\"" steps=2 tokens=230 message=Some("the answer does not fit the schema, also on the second try: it is no number")
    "#);
    assert_eq!(script.output(), None);
}

#[test]
fn words_before_a_call_need_not_fit_and_the_second_try_is_within_the_budget() {
    let mut script = asked(RunLimits { max_steps: Some(2), ..RunLimits::default() });
    let list = call("a", "no_such_tool", "{}");
    script.reply(1, &[text("I look first."), list], StopReason::ToolUse);
    assert!(!told(&mut script).contains("does not fit"));
    script.reply(2, &[text("none")], StopReason::EndTurn);
    insta::assert_snapshot!(told(&mut script), @r#"
    log notice answer_misfit the answer does not fit the schema: expected ident at line 1 column 2; the model is asked once more by Supervisor
    finish step_limit text="none" steps=2 tokens=230 message=Some("the limit of 2 steps is reached")
    "#);
    assert_eq!(script.output(), None);
}
