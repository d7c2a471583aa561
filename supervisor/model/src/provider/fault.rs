//! Parses error bodies of servers and gateways.

use serde_json::{Map, Value};

use super::ProviderError;
use super::blame::names_message;

/// Types and codes of errors, with the HTTP status to which each corresponds.
const MEANT: [(&str, u16); 31] = [
    ("invalid_request_error", 400),
    ("invalid_request", 400),
    ("invalid_prompt", 400),
    ("BadRequestError", 400),
    ("bad_request", 400),
    ("INVALID_ARGUMENT", 400),
    ("validation_error", 400),
    ("ValidationException", 400),
    ("context_length_exceeded", 400),
    ("exceed_context_size_error", 400),
    ("authentication_error", 401),
    ("invalid_api_key", 401),
    ("AuthenticationError", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("PermissionDeniedError", 403),
    ("not_found_error", 404),
    ("model_not_found", 404),
    ("NotFoundError", 404),
    ("timeout_error", 504),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("rate_limit_exceeded", 429),
    ("RateLimitError", 429),
    ("RESOURCE_EXHAUSTED", 429),
    ("ThrottlingException", 429),
    ("overloaded_error", 529),
    ("server_is_overloaded", 529),
    ("engine_overloaded_error", 529),
    ("slow_down", 529),
    ("server_error", 500),
];

/// Lower-case phrases in the messages of errors without such a type or code, with the corresponding HTTP status.
const SAID: [(&str, u16); 5] = [
    ("rate limit", 429),
    ("too many requests", 429),
    ("overloaded", 529),
    ("at capacity", 529),
    ("invalid api key", 401),
];

/// An error in the body of a reply.
///
/// | server | shape |
/// | --- | --- |
/// | Anthropic | `{"type":"error","error":{"type","message","details"},"request_id"}` |
/// | `OpenAI`, Groq, llama.cpp, ollama | `{"error":{"message","type","code"}}`; the code is a word or a status |
/// | `OpenRouter` | the same, with the message of the model's own server in `metadata.raw` |
/// | Venice | `{"error":"…"}` |
/// | xAI | `{"code":"…","error":"…"}` |
/// | Mistral, older vLLM | `{"message","type","code"}`, where the message may hold a `detail` |
/// | `FastAPI` | `{"detail":"…"}`, or a list of `{"loc":[…],"msg":"…"}` |
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplyFault {
    kind: Option<String>,
    pub message: Option<String>,
    code: Option<String>,
    /// The code as an HTTP status; `None` if the code is something else.
    pub status: Option<u16>,
    detail_code: Option<String>,
    pub request_id: Option<String>,
}

impl ReplyFault {
    pub(crate) fn parse(body: &[u8]) -> Self {
        let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
            return Self::default();
        };
        let error = body.get("error").unwrap_or(&Value::Null);
        let inner = error.as_object();
        let member = |name: &str| inner.and_then(|inner| inner.get(name));
        let code = member("code").or_else(|| body.get("code"));
        Self {
            kind: member("type").and_then(Value::as_str).map(str::to_owned),
            message: inner.map_or_else(|| text(error).or_else(|| of_top(&body)), of_error),
            code: code.and_then(Value::as_str).map(str::to_owned),
            status: [member("status_code"), code].into_iter().flatten().find_map(status),
            detail_code: error.pointer("/details/error_code").and_then(Value::as_str).map(str::to_owned),
            request_id: text(body.get("request_id").unwrap_or(&Value::Null)),
        }
    }

    /// Returns the API's type of the error, or the code if it is more specific; `None` if the body has neither.
    pub(crate) fn kind(&self) -> Option<String> {
        match self.code.as_deref() {
            Some(code @ ("context_length_exceeded" | "insufficient_quota")) => Some(code.to_owned()),
            // OpenAI's type only says what was counted: `tokens`, `requests`.
            Some("rate_limit_exceeded") => Some("rate_limit_error".to_owned()),
            _ => self.kind.clone(),
        }
    }

    pub(crate) fn word(&self) -> Option<String> {
        let is_word = |code: &&String| !code.bytes().all(|byte| byte.is_ascii_digit());
        self.kind().or_else(|| self.code.as_ref().filter(is_word).cloned())
    }

    /// Returns the HTTP status in the error, or the status for its type, code or message; `None` if these are unknown.
    pub(crate) fn meant_status(&self) -> Option<u16> {
        let words = [&self.code, &self.kind].into_iter().flatten();
        let of_word = |word: &String| MEANT.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
        let said = self.message.as_deref().unwrap_or_default().to_lowercase();
        let of_words = || SAID.iter().find(|(known, _)| said.contains(known));
        self.status
            .or_else(|| words.filter_map(of_word).map(|(_, status)| *status).next())
            .or_else(|| of_words().map(|(_, status)| *status))
            .or_else(|| names_message(&said).then_some(400))
    }

    /// True if the same request may succeed later.
    pub(crate) fn may_retry(&self, status: Option<u16>) -> bool {
        match status {
            Some(408 | 409) => true,
            // The server does not know the method, so it does not have this API.
            Some(501 | 505) => false,
            Some(429) | None => !self.is_spent(),
            Some(status) => status >= 500 || self.is_failed_generation(),
        }
    }

    /// Returns a hint for an account without money; `None` for other errors.
    pub(crate) fn remedy(&self, error: &ProviderError) -> Option<String> {
        let is_money = matches!(error.status, Some(429) | None);
        if is_money && self.is_limited() {
            Some("raise the account's spend limit, or wait for its reset".to_owned())
        } else if is_money && self.is_spent() {
            Some("check the account's plan and billing: no credit is left".to_owned())
        } else {
            None
        }
    }

    /// True if the account has no money left. Waiting does not help then.
    pub(crate) fn is_spent(&self) -> bool {
        let spent = ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"];
        let words = [&self.kind, &self.code].into_iter().flatten();
        self.is_limited() || words.into_iter().any(|word| spent.contains(&word.as_str()))
    }

    /// True if the account has reached a spending limit that its owner has set.
    pub(crate) fn is_limited(&self) -> bool {
        self.detail_code.as_deref().is_some_and(|code| code.contains("spend_limit"))
    }

    /// True if the model made an invalid call, so that the request is not at fault. Groq sends such errors.
    pub(crate) fn is_failed_generation(&self) -> bool {
        self.code.as_deref() == Some("tool_use_failed")
    }
}

fn of_error(error: &Map<String, Value>) -> Option<String> {
    let said = error.get("message").and_then(text);
    let raw = error.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(text);
    match (said, raw) {
        (Some(said), Some(raw)) => Some(format!("{said}: {raw}")),
        (said, raw) => said.or(raw),
    }
}

fn of_top(body: &Map<String, Value>) -> Option<String> {
    let message = body.get("message");
    let nested = message.and_then(|message| message.get("detail"));
    message.and_then(text).or_else(|| nested.or_else(|| body.get("detail")).and_then(detail))
}

fn detail(detail: &Value) -> Option<String> {
    let Value::Array(faults) = detail else { return text(detail) };
    let one = |fault: &Value| {
        let place = fault.get("loc").and_then(Value::as_array).into_iter().flatten();
        let place: Vec<_> = place.map(|step| text(step).unwrap_or_else(|| step.to_string())).collect();
        let said = fault.get("msg").and_then(text)?;
        Some(if place.is_empty() { said } else { format!("{}: {said}", place.join(".")) })
    };
    let said: Vec<_> = faults.iter().filter_map(one).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns the HTTP status in a code, which may be a number or text; `None` if the code is something else.
fn status(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> Option<String> {
        ReplyFault::parse(body.as_bytes()).message
    }

    #[test]
    fn e1_every_servers_shape_says_what_it_means() {
        for (body, expected) in [
            (r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#, "m"),
            (r#"{"error":{"message":"m","type":"server_error","code":null}}"#, "m"),
            (
                r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"too long"}}}"#,
                "Provider returned error: too long",
            ),
            (r#"{"error":"no such model"}"#, "no such model"),
            (r#"{"code":"The caller does not have permission","error":"no"}"#, "no"),
            (r#"{"object":"error","message":"m","type":"x","code":"1300"}"#, "m"),
            (
                r#"{"object":"error","message":{"detail":[{"loc":["body","tools",0],"msg":"bad"}]}}"#,
                "body.tools.0: bad",
            ),
            (r#"{"detail":"Unauthorized"}"#, "Unauthorized"),
            (r#"{"detail":[{"type":"missing","loc":["body"],"msg":"a"},{"msg":"b"},{}]}"#, "body: a; b"),
        ] {
            assert_eq!(said(body).as_deref(), Some(expected), "{body}");
        }
        for body in ["", "[]", "{}", r#"{"error":{"message":5}}"#, r#"{"error":null,"detail":[]}"#] {
            assert_eq!(said(body), None, "{body}");
        }
    }

    #[test]
    fn a_code_is_a_word_or_a_status() {
        let fault = |body: &str| ReplyFault::parse(body.as_bytes());
        assert_eq!(fault(r#"{"error":{"code":400}}"#).status, Some(400));
        assert_eq!(fault(r#"{"error":{"code":"429"}}"#).status, Some(429));
        assert_eq!(fault(r#"{"error":{"code":"x","status_code":400}}"#).status, Some(400));
        for none in [r#"{"error":{"code":1e300}}"#, r#"{"error":{"code":65936}}"#, r#"{"code":"1300"}"#] {
            assert_eq!(fault(none).status, None, "{none}");
        }
        let overflow =
            fault(r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}"#);
        assert_eq!(overflow.kind().as_deref(), Some("context_length_exceeded"));
        let limit = fault(r#"{"error":{"type":"tokens","code":"rate_limit_exceeded"}}"#);
        assert_eq!((limit.kind().as_deref(), limit.is_spent()), (Some("rate_limit_error"), false));
        assert!(fault(r#"{"error":{"type":"insufficient_quota"}}"#).is_spent());
        assert!(fault(r#"{"error":{"type":"x","code":"billing_not_active"}}"#).is_spent());
    }
}
