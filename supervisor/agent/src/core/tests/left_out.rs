//! Tests of errors that name a part of the conversation: the request is sent again without that part.

use insta::assert_snapshot;
use protocol::event::LeftOut;

use super::script::{Script, error, file, read, text, thinking};
use crate::conversation::{ProviderError, StopReason};

fn refused(part: LeftOut) -> ProviderError {
    ProviderError { status: Some(400), blames: Some(part), ..error("invalid_request_error", false) }
}

/// Returns an agent in its second turn. The first turn had a reply with thinking.
fn begun() -> Script {
    let mut script = Script::new();
    script.user("one").reply(1, &[thinking(), text("I look."), read("a", "a.rs")], StopReason::ToolUse);
    script.outcome(1, file("x\n")).reply(2, &[thinking(), text("1")], StopReason::EndTurn);
    script.user("two").lines();
    script
}

#[test]
fn z3_thinking_that_is_refused_is_left_out_once_and_the_session_goes_on() {
    let mut script = begun();
    script.failed(3, refused(LeftOut::Thinking)).reply(4, &[text("2")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log failed invalid_request_error retry=None by Supervisor
    log notice part_left_out the provider rejects the model's earlier thinking: the conversation continues without it by Supervisor
    log requested 1.2 by Supervisor
    start 4 with 5 messages
    log assistant msg_4 1 blocks, end_turn by Supervisor
    finish done text="2" steps=1 tokens=115 message=None
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "one"
    assistant {"type":"text","text":"I look."} {"type":"tool_use","id":"a","name":"read_file","input":{"path":"a.rs"}}
    user [result a: "     1\tx\n"]
    assistant {"type":"text","text":"1"}
    user "two"
    "#);
}

#[test]
fn z3_a_second_refusal_ends_the_turn_and_not_the_session() {
    let mut script = begun();
    script.failed(3, refused(LeftOut::Thinking)).failed(4, refused(LeftOut::Message(1)));
    assert_snapshot!(script.lines(), @r#"
    log failed invalid_request_error retry=None by Supervisor
    log notice part_left_out the provider rejects the model's earlier thinking: the conversation continues without it by Supervisor
    log requested 1.2 by Supervisor
    start 4 with 5 messages
    log failed invalid_request_error retry=None by Supervisor
    finish provider_error text="" steps=0 tokens=0 message=Some("it failed (invalid_request_error) [provider-failed]")
    "#);
    script.user("three").failed(5, refused(LeftOut::Message(1))).reply(6, &[text("3")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log user "three" by Supervisor
    log requested 1.1 by Supervisor
    start 5 with 5 messages
    log failed invalid_request_error retry=None by Supervisor
    log notice part_left_out the provider rejects a part of the conversation: it continues without that part by Supervisor
    log requested 1.2 by Supervisor
    start 6 with 5 messages
    log assistant msg_6 1 blocks, end_turn by Supervisor
    finish done text="3" steps=1 tokens=115 message=None
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "one"
    assistant {"type":"text","text":"(left out: the provider does not accept it in a request)"}
    user "A call of yours was left out. Its result:\n     1\tx\n"
    assistant {"type":"text","text":"1"}
    user "two" "three"
    "#);
}

#[test]
fn z3_nothing_is_left_out_that_is_not_there() {
    for part in [LeftOut::Thinking, LeftOut::Message(9), LeftOut::Message(u32::MAX)] {
        let mut script = Script::new();
        script.user("one").failed(1, refused(part));
        assert_eq!(script.requests().len(), 1, "{part:?}");
    }
}
