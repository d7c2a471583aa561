//! Errors that the relay itself sends to a client, in the form of the client's API.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::provider::ProviderKind;

pub(super) type AnswerBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// The header by which a server says if a client should send the request again.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

#[derive(Clone, Debug)]
pub(super) struct RelayAnswer {
    pub(super) status: StatusCode,
    /// Type of the error, in the words of the Messages API.
    pub(super) kind: &'static str,
    pub(super) message: String,
    /// True if the same request may succeed later.
    pub(super) is_for_later: bool,
}

impl RelayAnswer {
    pub(super) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), is_for_later: false }
    }

    pub(super) fn for_later(self) -> Self {
        Self { is_for_later: true, ..self }
    }

    pub(super) fn response(&self, kind: Option<ProviderKind>) -> Response<AnswerBody> {
        let message = format!("relay: {}", self.message);
        let error = match kind {
            Some(ProviderKind::OpenAi | ProviderKind::Responses) => {
                json!({"error": {"message": message, "type": self.kind, "param": null, "code": null}})
            }
            Some(ProviderKind::Anthropic) | None => {
                json!({"type": "error", "error": {"type": self.kind, "message": message}})
            }
        };
        let mut response = Response::new(whole(error.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let retry = if self.is_for_later { "true" } else { "false" };
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(retry));
        if self.is_for_later {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }
}

pub(super) fn whole(text: impl Into<Bytes>) -> AnswerBody {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}
