use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::anthropic::{self, Anthropic};
use super::chat::{self, OpenAiChat};
use super::decode::Envelope;
use super::members::ReplyMembers;
use super::reply::{Context, HttpReply};
use super::responses::Responses;
use super::{ConfigError, Connection, ProviderError, ProviderKind, StreamEvent};

/// Sends a request's body unchanged, except that `stream` becomes true. Returns `{"ok":true,"message":{…}}` in the
/// shape of the Messages API, for any provider, or `{"ok":false,"error":{"type":…,"message":…}}`. Makes one attempt.
pub async fn stream(kind: ProviderKind, connection: Connection, request: &[u8]) -> Value {
    answer(attempt(kind, connection, request).await)
}

pub async fn decode(kind: ProviderKind, body: Bytes) -> Value {
    let body = futures_util::stream::iter([Ok(body)]);
    answer(message(HttpReply::new(body, kind.decoder(), Context::of(kind))).await)
}

fn answer(result: Result<Value, ProviderError>) -> Value {
    match result {
        Ok(message) => json!({"ok": true, "message": message}),
        Err(error) => json!({"ok": false, "error": describe(&error)}),
    }
}

async fn attempt(kind: ProviderKind, connection: Connection, request: &[u8]) -> Result<Value, ProviderError> {
    let body = streaming(request)?;
    let unusable = |error: ConfigError| ProviderError::new("invalid_request_error", error.to_string());
    let reply = match kind {
        ProviderKind::Anthropic => {
            Anthropic::new(anthropic::AnthropicConfig::at(connection)).map_err(unusable)?.send(body).await?
        }
        ProviderKind::OpenAi => {
            OpenAiChat::new(chat::Config::at(connection)).map_err(unusable)?.send(body).await?
        }
        ProviderKind::Responses => Responses::new(connection).map_err(unusable)?.send(body).await?,
    };
    message(reply).await
}

async fn message(mut reply: HttpReply) -> Result<Value, ProviderError> {
    let mut content = Vec::new();
    while let Some(event) = reply.next().await {
        if let StreamEvent::BlockClosed { index, block } = event? {
            content.push((index, block.raw));
        }
    }
    // Blocks may close in another order than they opened.
    content.sort_by_key(|(index, _)| *index);
    let content = content.into_iter().map(|(_, raw)| value(&raw)).collect::<Result<Vec<_>, _>>()?;
    Ok(assemble(reply.envelope(), content))
}

fn assemble(envelope: &Envelope, content: Vec<Value>) -> Value {
    let mut message = Map::new();
    let mut set = |name: &str, value| message.insert(name.to_owned(), value);
    set("id", envelope.id.clone().into());
    set("type", "message".into());
    set("role", envelope.role.clone().into());
    set("model", envelope.model.clone().into());
    set("content", content.into());
    set("stop_reason", envelope.stop_reason.clone().into());
    set("stop_sequence", envelope.stop_sequence.clone().into());
    if let Some(details) = &envelope.stop_details {
        set("stop_details", details.clone());
    }
    set("usage", envelope.usage.clone().into());
    message.into()
}

fn describe(error: &ProviderError) -> Value {
    json!({
        "type": error.kind,
        "message": error.message,
        "hint": error.hint,
        "status": error.status,
        "request_id": error.request_id,
        "retryable": error.retryable,
    })
}

/// Returns the request with `"stream": true`, and with all other bytes unchanged.
fn streaming(request: &[u8]) -> Result<Bytes, ProviderError> {
    let invalid = |error: &serde_json::Error| {
        ProviderError::new("invalid_request_error", format!("the request is not a JSON object: {error}"))
    };
    let mut members: ReplyMembers = serde_json::from_slice(request).map_err(|error| invalid(&error))?;
    if members.get("stream").is_some_and(|stream| stream.get() == "true") {
        return Ok(Bytes::copy_from_slice(request));
    }
    members.set("stream", RawValue::from_string("true".to_owned()).map_err(|error| invalid(&error))?);
    members.to_json().map(Bytes::from).map_err(|error| invalid(&error))
}

fn value(raw: &RawValue) -> Result<Value, ProviderError> {
    serde_json::from_str(raw.get()).map_err(|error| {
        ProviderError::new(
            "invalid_response",
            format!("the provider sent a block that cannot be shown: {error}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_sent_as_it_is_but_for_stream() {
        for (request, expected) in [
            (r#"{"model":"m", "stream" : true}"#, r#"{"model":"m", "stream" : true}"#),
            (r#"{"n":1.0,"stream":false}"#, r#"{"n":1.0,"stream":true}"#),
            (r#"{"n": 1e2}"#, r#"{"n":1e2,"stream":true}"#),
        ] {
            assert_eq!(streaming(request.as_bytes()).expect(request), expected);
        }
        assert_eq!(streaming(b"[1]").expect_err("no object").kind, "invalid_request_error");
    }
}
