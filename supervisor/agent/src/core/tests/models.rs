use insta::assert_snapshot;

use super::script::{Script, call, config, file, raw, text, thinking};
use crate::conversation::{AssistantBlock, ContentBlock, RequestOptions, StopReason};
use crate::core::{Input, ModelChoice, Window};

fn choice(name: &str) -> Input {
    Input::Model(Box::new(ModelChoice {
        name: name.to_owned(),
        max_tokens: 500,
        options: RequestOptions::default(),
        sees_images: false,
        prices: None,
        window: Window::default(),
    }))
}

fn searched() -> AssistantBlock {
    let raw = raw(r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#);
    AssistantBlock { content: ContentBlock::Other { kind: "server_tool_use".to_owned() }, raw }
}

#[test]
fn another_model_goes_on_with_what_was_said_called_and_answered() {
    let mut script = Script::new();
    let reply = [thinking(), searched(), text("I read."), call("a", "read_file", r#"{"path":"a"}"#)];
    script.user("go").reply(1, &reply, StopReason::ToolUse).outcome(1, file("x\n"));
    script.reply(2, &[thinking()], StopReason::EndTurn).reply(3, &[thinking()], StopReason::EndTurn).lines();
    script.input(choice("n"));
    assert_snapshot!(script.lines(), @r"
    log model m -> n, new context: true by Supervisor
    log notice model_changed model: n · the new model reads the conversation without the earlier thinking · price unknown, so its cost is not counted by Supervisor
    ");
    script.user("and?");
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"text","text":"I read."} {"type":"tool_use","id":"a","name":"read_file","input":{"path":"a"}}
    user [result a: "     1\tx\n"] "Your reply was empty: no words, and no tool call. Go on with the task, or say in words what came of it." "and?"
    "#);
    let request = script.requests().pop().unwrap();
    assert_eq!((&*request.model, request.max_tokens), ("n", 500));
}

#[test]
fn a_model_changes_at_rest_alone() {
    let mut script = Script::new();
    script.user("go").input(choice("n"));
    assert!(script.lines().ends_with("notice model_refused cannot change the model: a turn is running; interrupt it, or wait for its end by Supervisor\n"));
    let mut starting = Script { agent: crate::core::Agent::new(config()).starting(), ..Script::new() };
    starting.user("go").input(choice("n"));
    assert!(starting.lines().contains("notice model_refused"));
    let mut fresh = Script::new();
    fresh.input(choice("m")).input(choice("n"));
    assert_snapshot!(fresh.lines(), @r"
    log notice model_unchanged nothing changed: the model is m by Supervisor
    log model m -> n, new context: false by Supervisor
    log notice model_changed model: n · price unknown, so its cost is not counted by Supervisor
    ");
}
