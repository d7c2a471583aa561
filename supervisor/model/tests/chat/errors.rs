use futures_util::StreamExt;
use model::provider::{ModelProvider, ProviderError};
use model::replay::{ReplayServer, Reply, Script};
use serde_json::json;

use crate::{KEY, answer, provider, request, serve, user};

#[tokio::test]
async fn e1_e2_every_servers_errors_are_a_kind_a_decision_and_a_line() {
    let bodies = [
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-x","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":4096}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"prompt is too long: 9 tokens > 8 maximum","provider_name":"x"}}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed"}}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"Extra inputs are not permitted","type":"invalid_request_error","code":"3051"}"#,
        ),
        (422, r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#),
        (404, r#"{"error":"Specified model not found: x"}"#),
        (403, r#"{"code":"The caller does not have permission","error":"The team has no credits."}"#),
        (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
        (
            500,
            r#"{"error":{"message":"llama runner has terminated","type":"api_error","param":null,"code":null}}"#,
        ),
    ];
    let mut lines = Vec::new();
    for (status, body) in bodies {
        let server = serve(Script::new().push(Reply::new(status, body)));
        let error = failure(&server, Some(KEY)).await;
        assert_eq!(error.status, Some(status));
        let retry = if error.retryable { "retryable" } else { "final" };
        let full = if error.is_context_overflow() { ", context" } else { "" };
        lines.push(format!("{retry}{full}: {}", told(&error).replace(&server.base_url(), "[server]")));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    final: the API answered 401 (invalid_request_error): Incorrect API key provided. | check OPENAI_API_KEY, whose key ends in …tail
    retryable: the API answered 429 (rate_limit_error): Rate limit reached for gpt-x | try again later, or choose another model with --model
    final: the API answered 429 (insufficient_quota): You exceeded your current quota | check the account's plan and billing: no credit is left
    final: the API answered 402 (unknown_error): Insufficient Balance | check the account's billing
    final, context: the API answered 400 (context_length_exceeded): Your input exceeds the context window of this model. | start a new conversation: this conversation is longer than the model's context
    final, context: the API answered 400 (exceed_context_size_error): the request exceeds the available context size, try increasing it | start a new conversation: this conversation is longer than the model's context
    final, context: the API answered 400 (invalid_request_error): Provider returned error: prompt is too long: 9 tokens > 8 maximum | start a new conversation: this conversation is longer than the model's context
    retryable: the API answered 400 (invalid_request_error): Failed to call a function.
    final: the API answered 400 (invalid_request_error): Extra inputs are not permitted
    final: the API answered 422 (invalid_request_error): body.messages: Field required
    final: the API answered 404 (not_found_error): Specified model not found: x | check --model: the server does not have this model
    final: the API answered 403 (permission_error): The team has no credits. | check the permissions of this key, and --model
    retryable: the API answered 503 (unavailable_error): Loading model | try again later, or choose another model with --model
    retryable: the API answered 500 (api_error): llama runner has terminated | try again later, or choose another model with --model
    "#);
}

fn told(error: &ProviderError) -> String {
    let hint = error.hint.as_ref().map(|hint| format!(" | {hint}"));
    format!("{}{}", error.message, hint.unwrap_or_default())
}

async fn failure(server: &ReplayServer, key: Option<&str>) -> ProviderError {
    let mut stream = provider(server, key).stream(request(&[user("hi")]));
    stream.next().await.expect("an item").expect_err("an error")
}

#[tokio::test]
async fn a_server_that_has_no_such_endpoint_is_named_with_what_was_asked() {
    let server = serve(Script::new().push(Reply::new(404, "404 page not found")));
    let error = failure(&server, None).await;
    let asked =
        format!("check --base-url and --provider: nothing is at {}/v1/chat/completions", server.base_url());
    assert_eq!(error.hint, Some(asked));
}

#[tokio::test]
async fn a_server_that_wants_a_key_after_all_says_which_to_set() {
    let body = json!({"error": {"message": "No auth credentials found", "code": 401}});
    let server = serve(Script::new().push(Reply::new(401, body.to_string())));
    let error = failure(&server, None).await;
    assert_eq!(error.hint.as_deref(), Some("set OPENAI_API_KEY: no API key is set"));
}

#[tokio::test]
async fn a_key_that_is_echoed_is_not_shown() {
    let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), "type": KEY}});
    let error = answer(Reply::new(401, body.to_string())).await;
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    let broken = format!("data: {}\n\n", json!({"error": {"message": KEY}}));
    assert!(!format!("{:?}", answer(Reply::sse(broken)).await).contains(KEY));
}

#[tokio::test]
async fn s7_a_connection_that_breaks_within_a_reply_is_worth_another_attempt() {
    const BEGUN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let server = serve(Script::new().push(Reply::sse(BEGUN).cut_after(BEGUN.len())));
    let items: Vec<_> = provider(&server, None).stream(request(&[user("hi")])).collect().await;
    let error = items.last().expect("an item").as_ref().expect_err("an error");
    assert_eq!((error.kind.as_str(), error.retryable), ("truncated_stream", true));
}
