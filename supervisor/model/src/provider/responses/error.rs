//! Errors within a reply of the Responses API, after the status 200.

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::wire::ResponsesApiError;
use crate::provider::ProviderError;
use crate::provider::failure::{kind_of, one_line};

/// Types and codes of errors after which the same request may succeed.
const PASSING: [&str; 8] = [
    "server_error",
    "api_error",
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "server_is_overloaded",
    "slow_down",
    "timeout_error",
];

/// Parses an error event. The API has the error's fields in `error`, its documentation in the event itself.
pub(super) fn from_event(data: &str) -> ProviderError {
    #[derive(Deserialize)]
    struct Nested {
        error: ResponsesApiError,
    }
    let nested = serde_json::from_str::<Nested>(data).map(|nested| nested.error);
    let error = nested.or_else(|_| {
        let flat = serde_json::from_str::<ResponsesApiError>(data)?;
        // The type of a flat event only says that it is an error.
        Ok::<_, serde_json::Error>(ResponsesApiError { kind: None, ..flat })
    });
    describe(error.unwrap_or_default())
}

pub(super) fn describe(error: ResponsesApiError) -> ProviderError {
    let status = error.code.as_ref().and_then(status);
    let kind = match (error.code, status) {
        (_, Some(status)) => kind_of(status).to_owned(),
        (Some(Value::String(code)), _) if !code.is_empty() => one_line(&code),
        _ => error.kind.map_or_else(|| "api_error".to_owned(), |kind| one_line(&kind)),
    };
    let retryable = match status {
        Some(status) => matches!(status.as_u16(), 408 | 409 | 429 | 500..),
        None => PASSING.contains(&kind.as_str()),
    };
    let said = error.message.map_or_else(|| "no message".to_owned(), |message| one_line(&message));
    let message = format!("the API broke off its reply ({kind}): {said}");
    let status = status.map(|status| status.as_u16());
    ProviderError { status, retryable, ..ProviderError::new(kind, message) }
}

/// Returns the HTTP status in the code of an error, which some gateways send; `None` for other codes.
fn status(code: &Value) -> Option<StatusCode> {
    let code = u16::try_from(code.as_u64()?).ok()?;
    StatusCode::from_u16(code).ok().filter(|status| status.is_client_error() || status.is_server_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_what_broke_a_reply_off_is_said_whatever_its_shape() {
        for (data, kind, retryable) in [
            (r#"{"type":"error","code":"server_error","message":"m","param":null}"#, "server_error", true),
            (
                r#"{"type":"error","error":{"type":"t","code":"insufficient_quota"}}"#,
                "insufficient_quota",
                false,
            ),
            (r#"{"type":"error","error":{"type":"overloaded_error","code":null}}"#, "overloaded_error", true),
            (r#"{"type":"error","error":{"code":502,"message":"m"}}"#, "api_error", true),
            (r#"{"type":"error","error":{"code":400,"message":"m"}}"#, "invalid_request_error", false),
            (r#"{"type":"error","error":{"code":1e300}}"#, "api_error", true),
            (r#"{"type":"error"}"#, "api_error", true),
            (r#"{"type":"error","error":"gone","message":[]}"#, "api_error", true),
        ] {
            let error = from_event(data);
            assert_eq!((error.kind.as_str(), error.retryable), (kind, retryable), "{data}: {error}");
        }
    }
}
