//! Errors within a reply after the status 200. They are handled like errors that have their own status.

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ProviderError;
use super::failure::{kind_of, one_line};
use super::fault::ReplyFault;
use super::retry_after::wait_in_words;

/// Returns the error in the data of an event, which can have the shape of any error body.
pub(crate) fn broken_off(data: &str) -> ProviderError {
    let fault = ReplyFault::parse(data.as_bytes());
    let status = fault.meant_status();
    let of_status = || status.and_then(|status| StatusCode::from_u16(status).ok()).map(kind_of);
    let kind =
        fault.word().or_else(|| of_status().map(str::to_owned)).unwrap_or_else(|| "api_error".to_owned());
    let kind = one_line(&kind);
    let said = fault.message.as_deref().map_or_else(|| "no message".to_owned(), one_line);
    let request_id = fault.request_id.as_deref().map(one_line);
    let message = match &request_id {
        Some(id) => format!("the API broke off its reply ({kind}): {said} [request-id {id}]"),
        None => format!("the API broke off its reply ({kind}): {said}"),
    };
    let error = ProviderError {
        status,
        request_id: request_id.map(String::into_boxed_str),
        retryable: fault.may_retry(status),
        retry_after: wait_in_words(&said).filter(|_| matches!(status, Some(429 | 503 | 529))),
        ..ProviderError::new(kind, message)
    };
    let hint = fault.remedy(&error);
    ProviderError { hint, ..error }
}

/// True if the data has the field `error`. Gateways send such errors, without a type, in the streams of all APIs.
pub(crate) fn tells_error(data: &str) -> bool {
    #[derive(Deserialize)]
    struct ErrorMember<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let member = serde_json::from_str::<ErrorMember<'_>>(data);
    member.is_ok_and(|member| member.error.get().starts_with(['{', '"']))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns the error's kind, status, `retryable` and delay.
    fn judged(data: &str) -> (String, Option<u16>, bool, Option<Duration>) {
        let error = broken_off(data);
        (error.kind, error.status, error.retryable, error.retry_after)
    }

    #[test]
    fn s8_words_within_a_stream_are_judged_as_with_their_status() {
        for (data, kind, status, retryable) in [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
                "overloaded_error",
                Some(529),
                true,
            ),
            (
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"m"}}"#,
                "invalid_request_error",
                Some(400),
                false,
            ),
            (
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
                "rate_limit_error",
                Some(429),
                false,
            ),
            (r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#, "api_error", None, true),
            (
                r#"{"type":"error","code":"server_error","message":"m","param":null}"#,
                "server_error",
                Some(500),
                true,
            ),
            (
                r#"{"type":"error","error":{"type":"t","code":"insufficient_quota"}}"#,
                "insufficient_quota",
                None,
                false,
            ),
            (
                r#"{"type":"error","error":{"code":"rate_limit_exceeded","message":"m"}}"#,
                "rate_limit_error",
                Some(429),
                true,
            ),
            (r#"{"type":"error","error":{"code":502,"message":"m"}}"#, "api_error", Some(502), true),
            (
                r#"{"error":{"code":"400","message":"m","type":null}}"#,
                "invalid_request_error",
                Some(400),
                false,
            ),
            (
                r#"{"error":{"object":"error","code":400,"message":"m","type":"BadRequestError"}}"#,
                "BadRequestError",
                Some(400),
                false,
            ),
            (r#"{"error":{"code":413,"message":"m"}}"#, "request_too_large", Some(413), false),
            (
                r#"{"id":"g","error":{"code":429,"message":"m"},"choices":[]}"#,
                "rate_limit_error",
                Some(429),
                true,
            ),
            (r#"{"error":"Rate limit reached"}"#, "rate_limit_error", Some(429), true),
            (
                r#"{"error":{"message":"The engine is currently overloaded"}}"#,
                "overloaded_error",
                Some(529),
                true,
            ),
            (
                r#"{"error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
                "invalid_request_error",
                Some(400),
                false,
            ),
            (r#"{"error":{"code":1e300}}"#, "api_error", None, true),
            (r#"{"type":"error","error":"gone","message":[]}"#, "api_error", None, true),
            (r#"{"type":"error"}"#, "api_error", None, true),
            ("", "api_error", None, true),
        ] {
            assert_eq!(judged(data), (kind.to_owned(), status, retryable, None), "{data}");
        }
    }

    #[test]
    fn s8_a_wait_in_words_is_honoured_and_a_length_is_known() {
        let waits = judged(
            r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 20s."}}"#,
        );
        assert_eq!(waits.3, Some(Duration::from_secs(20)));
        for data in [
            r#"{"error":{"code":400,"message":"This model's maximum context length is 4096 tokens."}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9000 tokens > 4096 maximum"}}"#,
            r#"{"type":"error","code":"context_length_exceeded","message":"maximum context length is 4096 tokens"}"#,
        ] {
            let error = broken_off(data);
            assert!(error.is_context_overflow() && !error.retryable, "{data}");
            assert_eq!(error.named_window(), Some(4096), "{data}");
        }
    }
}
