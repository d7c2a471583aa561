//! The body of a request.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::message::{self, Messages};
use crate::provider::messages::MessageText;
use crate::provider::{ModelRequest, ProviderError};

/// What marks the end of a prefix that the provider shall keep.
pub(super) const CACHE_MARKER: &str = r#""cache_control":{"type":"ephemeral"}"#;

/// The API's limit of a request (R2).
const MAX_BODY: usize = 32 * 1000 * 1000;

/// The JSON of a request. No sampling parameters and no thinking: the model's defaults hold.
///
/// Three cache markers (R8): the system prompt, which covers the tools too; the last block of the newest user message; and
/// the same place one turn before, so that a retry still finds what the last request wrote.
pub(super) fn body(request: &ModelRequest, messages: &Messages) -> Result<Bytes, ProviderError> {
    let prefix = prefix(request).map_err(|error| unserialisable(&error))?;
    let texts = messages.texts(&request.messages).map_err(|error| unserialisable(&error))?;
    let length = prefix.len() + texts.iter().map(|text| text.json.len() + 64).sum::<usize>();
    let mut body = Vec::with_capacity(length + 16);
    // The prefix is an object without `messages`: they take the place of its closing brace.
    body.extend_from_slice(&prefix[..prefix.len() - 1]);
    body.extend_from_slice(br#","messages":["#);
    write_messages(&texts, &mut body);
    body.extend_from_slice(b"]}");
    if body.len() > MAX_BODY {
        let message = format!(
            "the request has {} bytes, and the API takes {MAX_BODY}: start a new conversation, or read less at once",
            body.len()
        );
        return Err(ProviderError::new("request_too_large", message));
    }
    Ok(body.into())
}

fn write_messages(texts: &[MessageText], body: &mut Vec<u8>) {
    let mut of_user = texts.iter().enumerate().rev().filter(|(_, text)| text.of_user).map(|(index, _)| index);
    let marked = [of_user.next(), of_user.next()];
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        message::write(text, marked.contains(&Some(index)), body);
    }
}

/// All but the messages.
fn prefix(request: &ModelRequest) -> Result<Vec<u8>, serde_json::Error> {
    let has_system = !request.system.is_empty();
    let last = request.tools.len().saturating_sub(1);
    let tools = request.tools.iter().enumerate().map(|(index, tool)| Tool {
        name: tool.name,
        description: tool.description,
        input_schema: &tool.input_schema,
        // Only where no system prompt follows the tools: its marker covers them.
        cache_control: (!has_system && index == last).then_some(EPHEMERAL),
    });
    let system =
        has_system.then(|| [System { r#type: "text", text: &request.system, cache_control: EPHEMERAL }]);
    serde_json::to_vec(&Prefix {
        model: &request.model,
        max_tokens: request.max_tokens,
        stream: true,
        tools: tools.collect(),
        system,
    })
}

fn unserialisable(error: &serde_json::Error) -> ProviderError {
    ProviderError::new("invalid_request_error", format!("the request cannot be written as JSON: {error}"))
}

const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
struct Prefix<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[System<'a>; 1]>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct System<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}
