//! The relay's connection to the provider: the headers of requests, and the responses that are forwarded to clients.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::answer::{AnswerBody, RelayAnswer, SHOULD_RETRY, whole};
use super::passing::{PassingBody, RelayPassing};
use crate::provider::ProviderKind;
use crate::provider::passage::{Passage, Passed, Unanswered};

/// Maximum bytes that are read of an error's body, within the time [`ERROR_BODY`].
const MOST_ERROR: usize = 64 << 10;
const ERROR_BODY: Duration = Duration::from_secs(10);

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Versions of the Messages API that clients may request. [`BETAS`] has the only beta feature that they may request.
const VERSIONS: [&str; 2] = ["2026-10-21", "2023-06-01"];
const BETAS: [&str; 1] = ["interleaved-thinking-2025-05-14"];

/// The headers of a response that are forwarded to the client.
const PASSED: [HeaderName; 5] = [REQUEST_ID, X_REQUEST_ID, RETRY_AFTER, RETRY_AFTER_MS, SHOULD_RETRY];

/// Returns the headers for the provider: the known headers of the client, whose values are parsed and written again.
pub(super) fn headers(kind: ProviderKind, given: &HeaderMap) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let value = |name: &HeaderName| {
        let mut values = given.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => Ok(Some(value.to_str().unwrap_or("?").trim())),
            (Some(_), Some(_)) => Err(format!("{name}: occurs twice")),
        }
    };
    if kind != ProviderKind::Anthropic {
        return Ok(headers);
    }
    for (name, known) in [(VERSION, &VERSIONS[..]), (BETA, &BETAS[..])] {
        if let Some(given) = value(&name)? {
            let known = known.iter().find(|known| **known == given);
            let known =
                known.ok_or_else(|| format!("{name}: \"{}\" is not relayed", given.escape_debug()))?;
            headers.insert(name, HeaderValue::from_static(known));
        } else if name == VERSION {
            return Err(format!("{name}: is missing"));
        }
    }
    Ok(headers)
}

pub(super) async fn pass(
    passage: &Passage,
    body: Bytes,
    headers: HeaderMap,
    mut passing: RelayPassing,
    permit: OwnedSemaphorePermit,
) -> Response<AnswerBody> {
    let kind = Some(passage.kind());
    let passed = match passage.send(body, headers).await {
        Ok(passed) => passed,
        Err(Unanswered { error, may_have_arrived }) => {
            // Details are only in the log, for the relay's owner. The client does not learn the provider's address.
            let message = if may_have_arrived {
                "the provider did not answer"
            } else {
                "the provider cannot be reached"
            };
            let answer = RelayAnswer::new(StatusCode::BAD_GATEWAY, "api_error", message);
            let answer = if error.retryable { answer.for_later() } else { answer };
            let why = passage.hide(&error.message);
            if may_have_arrived {
                passing.cut(502, why);
            } else {
                passing.release(502, "unreachable", why);
            }
            return answer.response(kind);
        }
    };
    // The body has been sent, so its memory is free.
    passing.room.take();
    passing.entry.status = passed.status.as_u16();
    passing.entry.request_id = [REQUEST_ID, X_REQUEST_ID]
        .iter()
        .find_map(|name| text(&passed.headers, name))
        .map(|id| passage.hide(&id));
    if passed.status != StatusCode::OK {
        return failed(passage, passed, passing).await;
    }
    let Passed { headers, body, .. } = passed;
    let is_json = text(&headers, &CONTENT_TYPE).is_some_and(|media| media.starts_with("application/json"));
    let body = PassingBody { bytes: body, passing, _permit: permit };
    let mut response = Response::new(body.boxed_unsync());
    copy(passage, &headers, response.headers_mut());
    let media = if is_json { "application/json" } else { "text/event-stream" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn copy(passage: &Passage, from: &HeaderMap, to: &mut HeaderMap) {
    for name in PASSED {
        if let Some(value) = text(from, &name).and_then(|value| passage.hide(&value).parse().ok()) {
            to.insert(name, value);
        }
    }
}

/// Answers a client after an error of the provider. An error in JSON is forwarded, since it may help the client. An
/// HTML page or a statement about the key is not forwarded.
async fn failed(passage: &Passage, passed: Passed, passing: RelayPassing) -> Response<AnswerBody> {
    let Passed { status, headers, mut body } = passed;
    let (mut bytes, deadline) = (Vec::new(), Instant::now() + ERROR_BODY);
    while bytes.len() < MOST_ERROR
        && let Ok(Some(Ok(piece))) = timeout_at(deadline, body.next()).await
    {
        bytes.extend_from_slice(&piece);
    }
    bytes.truncate(MOST_ERROR);
    let said = passage.hide(&String::from_utf8_lossy(&bytes)).replace(&passage.host(), "the provider");
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&said).is_ok();
    passing.release(status.as_u16(), "upstream_error", said.clone());
    let kind = Some(passage.kind());
    match status.as_u16() {
        401 | 403 => {
            let message = "the provider did not accept the relay's key; the relay's log says more";
            RelayAnswer::new(StatusCode::FORBIDDEN, "permission_error", message).response(kind)
        }
        400.. if is_object => {
            let mut response = Response::new(whole(said));
            *response.status_mut() = status;
            copy(passage, &headers, response.headers_mut());
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        code => {
            let status = if code < 400 { StatusCode::BAD_GATEWAY } else { status };
            let answer = RelayAnswer::new(status, "api_error", format!("the provider answered {code}"));
            let mut response = if code >= 500 { answer.for_later() } else { answer }.response(kind);
            copy(passage, &headers, response.headers_mut());
            response
        }
    }
}
