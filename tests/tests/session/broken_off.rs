//! Tests errors within a stream after status 200: they have the same effect as an error status.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::replay::{Block, ReplayServer, Usage, chat, responses, sse};
use serde_json::{Value, json};
use tests::replies::model_of;
use tests::side_by_side::many_at_once;
use tests::world::KEY;
use tests::{Finished, User, World};

const PROVIDERS: [&str; 3] = ["anthropic", "openai", "responses"];

/// Returns a reply in the format of a provider.
fn reply(provider: &str, blocks: &[Block]) -> String {
    let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    let usage = Usage::default();
    match provider {
        "openai" => chat::message(blocks, if calls { "tool_calls" } else { "stop" }, usage),
        "responses" => responses::message(blocks, if calls { "tool_use" } else { "end_turn" }, usage),
        _ => sse::message(blocks, if calls { "tool_use" } else { "end_turn" }, usage),
    }
}

fn words(provider: &str, text: &str) -> String {
    reply(provider, &[Block::text(text)])
}

fn looks(provider: &str) -> String {
    let call = Block::tool_use("toolu_1", "list_directory", r#"{"path":"."}"#);
    reply(provider, &[Block::thinking("Hm.", "c2ln"), call])
}

/// Returns a reply that this error ends after its first event.
fn broken(provider: &str, error: &Value) -> String {
    let whole = words(provider, "It goes on.");
    let (first, _) = whole.split_once("\n\n").unwrap();
    let data = match provider {
        "openai" => json!({"error": error}),
        _ => json!({"type": "error", "error": error}),
    };
    format!("{first}\n\nevent: error\ndata: {data}\n\n")
}

fn run(world: &World, server: &ReplayServer, provider: &str) -> Finished {
    let mut command = world.exec(server, &["--provider", provider, "--model", "claude-opus-5-5"]);
    Finished::of(command.env("OPENAI_API_KEY", KEY))
}

#[test]
fn z3_a_part_of_the_conversation_that_is_named_within_a_stream_is_left_out_once() {
    let world = World::new(User::Myself);
    for (provider, error) in [
        (
            "anthropic",
            json!({"type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}),
        ),
        ("openai", json!({"message": "Unknown parameter: 'messages[2].reasoning_content'.", "code": "400"})),
        (
            "openai",
            json!({"message": "messages[2]: bad thinking block", "code": 400, "type": "BadRequestError"}),
        ),
        (
            "responses",
            json!({"code": "invalid_request_error", "message": "The encrypted content c2ln could not be verified."}),
        ),
    ] {
        let server = model_of([looks(provider), broken(provider, &error), words(provider, "Done.")]);
        let run = run(&world, &server, provider).expect(0);
        assert_eq!(run.result()["text"], "Done.", "{provider} {error}");
        let sent = String::from_utf8(server.requests()[2].body.clone().into()).unwrap();
        assert!(!sent.contains("Hm.") && !sent.contains("c2ln"), "{provider}: {sent}");
    }
}

#[test]
fn z4_a_length_that_is_refused_within_a_stream_is_answered_by_a_shorter_conversation() {
    let world = World::new(User::Myself);
    for (provider, error) in [
        (
            "anthropic",
            json!({"type": "invalid_request_error", "message": "prompt is too long: 205000 tokens > 200000 maximum"}),
        ),
        ("openai", json!({"message": "This model's maximum context length is 65536 tokens.", "code": 400})),
        (
            "responses",
            json!({"code": "context_length_exceeded", "message": "Your input exceeds the context window."}),
        ),
    ] {
        let replies = [
            looks(provider),
            broken(provider, &error),
            words(provider, "A summary."),
            words(provider, "Done."),
        ];
        let run = run(&world, &model_of(replies), provider).expect(0);
        assert_eq!(run.events_of("context_compacted").len(), 1, "{provider}: {}", run.stderr);
    }
}

#[test]
fn e3_a_wait_and_an_overload_within_a_stream_are_honoured() {
    let wait = json!({"code": "rate_limit_exceeded", "type": "tokens", "message": "Rate limit reached. Please try again in 70ms."});
    let overload = json!({"type": "overloaded_error", "message": "Overloaded"});
    let busy = json!({"code": 503, "message": "The model is at capacity"});
    many_at_once(PROVIDERS.len(), PROVIDERS, |provider| {
        for (error, kind, waits) in [
            (&wait, "rate_limit_error", Some(70)),
            (&overload, "overloaded_error", None),
            (&busy, "api_error", None),
        ] {
            let server = model_of([broken(provider, error), words(provider, "Done.")]);
            let run = run(&World::new(User::Myself), &server, provider).expect(0);
            let failed = &run.events_of("model_failed")[0];
            assert_eq!(failed["kind"], kind, "{provider} {error}");
            assert!(waits.is_none_or(|waits: u64| failed["retry_in_ms"] == waits), "{provider} {failed}");
        }
    });
}

#[test]
fn e2_what_cannot_heal_within_a_stream_is_told_at_once() {
    let world = World::new(User::Myself);
    for provider in PROVIDERS {
        for (error, hint) in [
            (json!({"code": 401, "message": "bad key"}), "API_KEY"),
            (json!({"code": "insufficient_quota", "message": "no credit"}), "billing"),
            (json!({"code": 404, "message": "no model m"}), "--model"),
        ] {
            let server = model_of([broken(provider, &error)]);
            let run = run(&world, &server, provider).expect(6);
            let message = run.result()["message"].as_str().unwrap().to_owned();
            assert!(message.contains(hint), "{provider} {error}: {message}");
        }
    }
}
