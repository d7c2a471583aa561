use insta::assert_snapshot;

use super::script::{Script, error, file, read, text, thinking};
use crate::conversation::{StopReason, StreamEvent};
use crate::core::Input;

#[test]
fn plain_answer() {
    let mut script = Script::new();
    script.context("environment", "net off").user("hi").started(1).delta(1, 0, "Hel").delta(1, 0, "lo");
    script.stream(1, StreamEvent::BlockClosed { index: 0, block: text("Hello") });
    script.stream(1, super::script::completed(StopReason::EndTurn));
    assert_snapshot!(script.lines(), @r#"
    log context environment "net off" by Supervisor
    log user "hi" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    show "Hel"
    show "lo"
    log assistant msg_1 1 blocks, end_turn by Supervisor
    finish done text="Hello" steps=1 tokens=115 message=None
    "#);
    assert_snapshot!(script.last_messages(), @r#"user "net off" "hi""#);
}

#[test]
fn tool_loop() {
    let mut script = Script::new();
    script.user("fix it").reply(1, &[thinking(), text("I look."), read("a", "a.rs")], StopReason::ToolUse);
    script.outcome(1, file("fn main() {}\n")).reply(2, &[text("Done.")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log user "fix it" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 3 blocks, tool_use by Supervisor
    log started 1 a read_file {"path":"a.rs"} by Supervisor
    dispatch 1 read_file
    log finished 1 a Completed "     1\tfn main() {}\n" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish done text="Done." steps=2 tokens=230 message=None
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "fix it"
    assistant {"type":"thinking","thinking":"","signature":"s"} {"type":"text","text":"I look."} {"type":"tool_use","id":"a","name":"read_file","input":{"path":"a.rs"}}
    user [result a: "     1\tfn main() {}\n"]
    "#);
}

#[test]
fn next_turn_goes_on_with_the_same_history() {
    let mut script = Script::new();
    script.user("one").reply(1, &[text("1")], StopReason::EndTurn).lines();
    script.context("net", "net on").user("two").reply(2, &[text("2")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log context net "net on" by Supervisor
    log user "two" by Supervisor
    log requested 1.1 by Supervisor
    start 2 with 3 messages
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish done text="2" steps=1 tokens=115 message=None
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "one"
    assistant {"type":"text","text":"1"}
    user "net on" "two"
    "#);
}

#[test]
fn words_of_a_busy_time_follow_the_results() {
    let mut script = Script::new();
    script.user("fix it").reply(1, &[read("a", "a.rs")], StopReason::ToolUse);
    script.user("and b.rs").outcome(1, file("x\n"));
    assert_snapshot!(script.last_messages(), @r#"
    user "fix it"
    assistant {"type":"tool_use","id":"a","name":"read_file","input":{"path":"a.rs"}}
    user [result a: "     1\tx\n"] "and b.rs"
    "#);
}

#[test]
fn words_that_came_before_the_end_of_the_turn_get_an_answer() {
    let mut script = Script::new();
    script.user("one").user("two").reply(1, &[text("1")], StopReason::EndTurn);
    assert_snapshot!(script.last_messages(), @r#"
    user "one"
    assistant {"type":"text","text":"1"}
    user "two"
    "#);
    script.lines();
    script.reply(2, &[text("2")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish done text="2" steps=2 tokens=230 message=None
    "#);
}

#[test]
fn retry_sends_the_same_request_and_voids_what_came() {
    let mut script = Script::new();
    script.user("hi").started(1).delta(1, 0, "Hel").failed(1, error("overloaded_error", true));
    script.delta(1, 0, "late").timer(1).timer(1);
    script.reply(2, &[text("Hello")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log user "hi" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    show "Hel"
    log failed overloaded_error void retry=Some(1000) by Supervisor
    timer 1 after 1s
    log requested 1.2 by Supervisor
    start 2 with 1 messages
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish done text="Hello" steps=1 tokens=115 message=None
    "#);
    let requests = script.requests();
    assert_eq!(super::script::messages(requests[0]), super::script::messages(requests[1]));
}

#[test]
fn retries_are_exhausted() {
    let mut script = Script::new();
    script.user("hi");
    for attempt in 1..=3 {
        script.failed(attempt, error("overloaded_error", true)).timer(attempt);
    }
    assert_snapshot!(script.lines(), @r#"
    log user "hi" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log failed overloaded_error retry=Some(1000) by Supervisor
    timer 1 after 1s
    log requested 1.2 by Supervisor
    start 2 with 1 messages
    log failed overloaded_error retry=Some(1000) by Supervisor
    timer 2 after 1s
    log requested 1.3 by Supervisor
    start 3 with 1 messages
    log failed overloaded_error retry=None by Supervisor
    finish provider_error text="" steps=0 tokens=0 message=Some("it failed (overloaded_error); given up after 3 attempts [provider-failed]")
    "#);
    // The next turn joins the message that got no answer.
    script.user("still there?");
    assert_snapshot!(script.last_messages(), @r#"user "hi" "still there?""#);
}

#[test]
fn bad_key_is_not_tried_again() {
    let mut script = Script::new();
    script.user("hi").failed(1, error("authentication_error", false));
    assert_snapshot!(script.lines(), @r#"
    log user "hi" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log failed authentication_error retry=None by Supervisor
    finish provider_error text="" steps=0 tokens=0 message=Some("it failed (authentication_error) [bad-key]")
    "#);
}

#[test]
fn prompt_that_is_too_long_is_a_full_context() {
    let mut script = Script::new();
    let mut overflow = error("invalid_request_error", false);
    overflow.message = "400: prompt is too long: 1000001 tokens > 1000000 maximum".to_owned();
    script.user("hi").failed(1, overflow).lines();
    assert!(script.effects.iter().any(
        |effect| matches!(effect, crate::core::Effect::Finish(end) if end.reason == crate::core::EndReason::ContextFull)
    ));
}

#[test]
fn stream_cut_after_content_starts_over() {
    let mut script = Script::new();
    script.user("hi").started(1).stream(1, StreamEvent::BlockClosed { index: 0, block: read("a", "a.rs") });
    script.failed(1, error("truncated_stream", true)).timer(1);
    script.reply(2, &[text("Hello")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log user "hi" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log failed truncated_stream void retry=Some(1000) by Supervisor
    timer 1 after 1s
    log requested 1.2 by Supervisor
    start 2 with 1 messages
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish done text="Hello" steps=1 tokens=115 message=None
    "#);
    assert_snapshot!(script.last_messages(), @r#"user "hi""#);
}

#[test]
fn late_and_strange_events_change_nothing() {
    let mut script = Script::new();
    script.user("hi").reply(1, &[text("Hello")], StopReason::EndTurn).lines();
    script.reply(1, &[text("again")], StopReason::EndTurn).reply(9, &[text("never")], StopReason::EndTurn);
    script.failed(1, error("connection", true)).timer(1).outcome(1, file("x")).lost(2).interrupt();
    script.input(Input::TimeUp).user("  \n");
    assert_snapshot!(script.lines(), @"log notice empty_message an empty message was not sent by Supervisor");
}

#[test]
fn empty_blocks_never_reach_the_history() {
    let mut script = Script::new();
    script.user("hi").reply(1, &[text("")], StopReason::EndTurn).reply(2, &[text("")], StopReason::EndTurn);
    script.user("say something");
    assert_snapshot!(script.last_messages(), @r#"user "hi" "Your reply was empty: no words, and no tool call. Go on with the task, or say in words what came of it." "say something""#);
}

#[test]
fn events_of_an_earlier_attempt_are_not_mixed_into_the_next() {
    let mut script = Script::new();
    script.user("hi").failed(1, error("connection", true)).timer(1).lines();
    script.delta(1, 0, "late").reply(1, &[text("late")], StopReason::EndTurn);
    script.failed(1, error("connection", true));
    assert_eq!(script.lines(), "");
    script.reply(2, &[text("Hello")], StopReason::EndTurn);
    assert!(script.lines().contains(r#"finish done text="Hello""#));
}
