//! Tests of errors with a status other than 200.

use std::time::Duration;

use model::provider::ProviderError;
use model::replay::Reply;
use serde_json::json;

use crate::{KEY, answer};

#[tokio::test]
async fn e1_e2_every_status_is_a_kind_a_decision_and_a_line() {
    let cases = [
        (400, "invalid_request_error", "messages.0: bad", false),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", false),
        (401, "authentication_error", "invalid x-api-key", false),
        (402, "billing_error", "no credit", false),
        (403, "permission_error", "not yours", false),
        (404, "not_found_error", "model: claude-sonet", false),
        (409, "conflict_error", "busy", true),
        (413, "request_too_large", "too big", false),
        (429, "rate_limit_error", "slow down", true),
        (500, "api_error", "Internal server error", true),
        (504, "timeout_error", "took too long", true),
        (529, "overloaded_error", "Overloaded", true),
    ];
    let mut lines = Vec::new();
    for (status, kind, message, retryable) in cases {
        let error = answer(Reply::error(status, kind, message).header("request-id", "req_1")).await;
        assert_eq!((error.status, error.kind.as_str()), (Some(status), kind));
        assert_eq!((error.retryable, error.request_id.as_deref()), (retryable, Some("req_1")), "{error:?}");
        lines.push(without_port(&told(&error)));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    the API answered 400 (invalid_request_error): messages.0: bad [request-id req_1]
    the API answered 400 (invalid_request_error): prompt is too long: 210000 tokens > 200000 maximum [request-id req_1] | start a new conversation: this conversation is longer than the model's context
    the API answered 401 (authentication_error): invalid x-api-key [request-id req_1] | check ANTHROPIC_API_KEY, whose key ends in …tail
    the API answered 402 (billing_error): no credit [request-id req_1] | check the account's billing
    the API answered 403 (permission_error): not yours [request-id req_1] | check the permissions of this key, and --model
    the API answered 404 (not_found_error): model: claude-sonet [request-id req_1] | check --model: the server does not have this model
    the API answered 409 (conflict_error): busy [request-id req_1] | try again later, or choose another model with --model
    the API answered 413 (request_too_large): too big [request-id req_1] | start a new conversation, or read less at once
    the API answered 429 (rate_limit_error): slow down [request-id req_1] | try again later, or choose another model with --model
    the API answered 500 (api_error): Internal server error [request-id req_1] | try again later, or choose another model with --model
    the API answered 504 (timeout_error): took too long [request-id req_1] | try again later, or choose another model with --model
    the API answered 529 (overloaded_error): Overloaded [request-id req_1] | try again later, or choose another model with --model
    "#);
}

fn told(error: &ProviderError) -> String {
    let hint = error.hint.as_ref().map(|hint| format!(" | {hint}"));
    format!("{}{}", error.message, hint.unwrap_or_default())
}

fn without_port(message: &str) -> String {
    match message.split_once("127.0.0.1:") {
        Some((before, after)) => {
            format!("{before}[server]{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => message.to_owned(),
    }
}

#[tokio::test]
async fn e1_bodies_of_gateways_and_proxies_are_borne() {
    let bodies = [
        (502, "<html><h1>502 Bad Gateway</h1></html>"),
        (503, ""),
        (500, "upstream\r\n\u{1b}[31mexploded\u{7}"),
        (401, r#"{"error":"no such key"}"#),
        (400, r#"{"message":"Bad","type":"x"}"#),
        (422, r#"{"detail":"field required"}"#),
        (500, r#"{"error":{"message":5}}"#),
        (501, "<html>Unsupported method</html>"),
    ];
    let mut lines = Vec::new();
    for (status, body) in bodies {
        let error = answer(Reply::new(status, body)).await;
        lines.push(format!("{} {}", error.retryable, told(&error)));
    }
    insta::assert_snapshot!(without_port(&lines.join("\n")), @r#"
    true the API answered 502 (api_error): Bad Gateway, with a page of HTML: the reply is not from the API, but from a server in front of the API | try again later, or choose another model with --model
    true the API answered 503 (api_error): Service Unavailable, with an empty body | try again later, or choose another model with --model
    true the API answered 500 (api_error): Internal Server Error: upstream [31mexploded | try again later, or choose another model with --model
    false the API answered 401 (authentication_error): no such key | check ANTHROPIC_API_KEY, whose key ends in …tail
    false the API answered 400 (invalid_request_error): Bad
    false the API answered 422 (invalid_request_error): field required
    true the API answered 500 (api_error): Internal Server Error: {"error":{"message":5}} | try again later, or choose another model with --model
    false the API answered 501 (api_error): Not Implemented, with a page of HTML: the reply is not from the API, but from a server in front of the API | check --base-url and --provider: nothing is at http://[server]/v1/messages
    "#);
}

#[tokio::test]
async fn e2_the_providers_word_on_retries_wins_and_a_spend_limit_is_final() {
    let retryable = async |reply| answer(reply).await.retryable;
    assert!(
        retryable(Reply::error(400, "invalid_request_error", "x").header("x-should-retry", "true")).await
    );
    assert!(!retryable(Reply::error(529, "overloaded_error", "x").header("x-should-retry", "false")).await);
    let body = json!({"type": "error", "error": {
        "type": "rate_limit_error", "message": "limit", "details": {"error_code": "enforced_spend_limit_reached"},
    }});
    let error = answer(Reply::new(429, body.to_string())).await;
    assert!(!error.retryable && told(&error).contains("raise the account's spend limit"), "{error:?}");
}

#[tokio::test]
async fn e3_the_wait_that_the_provider_asks_for_is_reported() {
    let reply = || Reply::error(429, "rate_limit_error", "x");
    assert_eq!(
        answer(reply().header("retry-after", "2.5")).await.retry_after,
        Some(Duration::from_millis(2500))
    );
    let azure = reply().header("retry-after", "1").header("retry-after-ms", "0");
    assert_eq!(answer(azure).await.retry_after, None);
}

#[tokio::test]
async fn a_key_that_is_echoed_by_the_provider_is_not_shown() {
    let error = answer(Reply::error(401, "authentication_error", &format!("bad key: {KEY}"))).await;
    assert!(!error.message.contains(KEY) && error.message.contains("bad key: ****"), "{error}");
    assert_eq!(error.hint.as_deref(), Some("check ANTHROPIC_API_KEY, whose key ends in …tail"));
}
