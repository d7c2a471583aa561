//! Tests calls that a model writes as text: they are never executed, and the error names the cause.

use model::replay::{Block, Usage, chat, responses};
use serde_json::{Value, json};
use tests::replies::{model_of, says, shell};
use tests::served::Served;
use tests::world::KEY;
use tests::{Finished, User, World};

/// Text with a tool call in it, which the model's server did not recognise as a call.
const WRITTEN: &str = "I do it.\n\n<tool_call>\n{\"name\": \"shell_exec\", \"arguments\": {\"command\": \"touch done\"}}\n</tool_call>";

/// Beginning of the error's text about a call that the model wrote as text.
const NAMED: &str =
    "the model wrote a call of shell_exec as text; the model's server did not recognise the call";

fn replies(provider: &str, texts: &[&str]) -> Vec<String> {
    let reply = |text: &&str| match provider {
        "openai" => chat::message(&[Block::text(*text)], "stop", Usage::default()),
        "responses" => responses::message(&[Block::text(*text)], "end_turn", Usage::default()),
        _ => says(text, "end_turn"),
    };
    texts.iter().map(reply).collect()
}

#[test]
fn z5_a_call_as_text_ends_with_three_and_a_reason_in_every_dialect() {
    let world = World::new(User::Myself);
    for provider in ["anthropic", "openai", "responses"] {
        let server = model_of(replies(provider, &[WRITTEN, WRITTEN]));
        let flags = ["--provider", provider, "--model", "m", "--mode", "auto"];
        let run = Finished::of(world.exec(&server, &flags).env("OPENAI_API_KEY", KEY)).expect(3);
        assert_eq!(run.result()["reason"], "call_as_text", "{provider}");
        assert_eq!(run.result()["text"], "", "{provider}: it is no answer");
        let notices = run.events_of("notice");
        let named = notices.iter().filter(|notice| notice["code"] == "call_as_text").count();
        assert_eq!(named, 2, "{provider}: {notices:?}");
        assert!(!world.project().join("done").exists(), "{provider}: it was run");
        let last: Value = serde_json::from_slice(&server.requests()[1].body).unwrap();
        assert!(last.to_string().contains("Nothing was run"), "{provider}: {last}");
    }
}

#[test]
fn z5_z8_on_a_pipe_only_the_answer_is_printed_and_the_call_is_named() {
    let world = World::new(User::Myself);
    let server =
        model_of([&says(WRITTEN, "end_turn"), &shell("true"), &says("Done.", "end_turn")].map(String::clone));
    let mut exec = world.bailiwick(["exec", "--mode", "auto", "--base-url", &server.base_url(), "-C"]);
    let run = Finished::of(exec.arg(world.project()).arg("do it").env("ANTHROPIC_API_KEY", KEY)).expect(0);
    assert_eq!(run.stdout, "Done.\n");
    assert!(run.stderr.contains(NAMED), "{}", run.stderr);
}

#[test]
fn z5_a_front_end_hears_of_it() {
    let world = World::new(User::Myself);
    let server = model_of(replies("anthropic", &[WRITTEN, WRITTEN]));
    let mut front_end = Served::greeted(&world);
    let conversation = front_end.converse(&world.project(), &server.base_url(), "auto");
    front_end.call("sendUserMessage", json!({"conversation_id": conversation, "text": "do it"}));
    let notice = front_end.until("event/notice");
    assert!(notice.to_string().contains("call_as_text"), "{notice}");
    let finished = front_end.until("event/turnFinished");
    assert_eq!(finished["data"]["reason"], "call_as_text", "{finished}");
    let message = finished["data"]["message"].as_str().unwrap();
    assert!(message.contains("as text, twice in a row") && message.contains("hint: "), "{message}");
}
