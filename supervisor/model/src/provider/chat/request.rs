use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::config::{ChatServer, ReplyLimit};
use crate::provider::messages::MessageText;
use crate::provider::{Effort, ModelRequest, ProviderError, Temperature};

/// Returns the JSON of a request. The unchanging part of a conversation comes first, with the same bytes each time, so
/// that a server can use its cache.
pub(super) fn body(
    request: &ModelRequest,
    texts: &[MessageText],
    server: ChatServer,
) -> Result<Bytes, ProviderError> {
    let prefix = prefix(request, server).map_err(|error| unserialisable(&error))?;
    let length = prefix.len() + texts.iter().map(|text| text.json.len() + 1).sum::<usize>();
    let mut body = Vec::with_capacity(length + 2);
    // The prefix ends with the list of messages, which has only the system prompt so far.
    body.extend_from_slice(prefix.strip_suffix(b"]}").unwrap_or(&prefix));
    for (index, text) in texts.iter().enumerate() {
        if index > 0 || !request.system.is_empty() {
            body.push(b',');
        }
        body.extend_from_slice(&text.json);
    }
    body.extend_from_slice(b"]}");
    Ok(body.into())
}

fn prefix(request: &ModelRequest, server: ChatServer) -> Result<Vec<u8>, serde_json::Error> {
    let limit = |wanted: ReplyLimit| (server.reply_limit == wanted).then_some(request.max_tokens);
    let tools = request.tools.iter().map(|tool| ChatTool {
        r#type: "function",
        function: DeclaredFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
        },
    });
    let system = (!request.system.is_empty()).then_some(System { role: "system", content: &request.system });
    serde_json::to_vec(&Prefix {
        model: &request.model,
        stream: true,
        stream_options: server.takes_stream_options.then_some(StreamOptions { include_usage: true }),
        max_tokens: limit(ReplyLimit::MaxTokens),
        max_completion_tokens: limit(ReplyLimit::MaxCompletionTokens),
        reasoning_effort: effort(request.options.effort),
        temperature: request.options.temperature,
        tools: tools.collect(),
        messages: system.into_iter().collect(),
    })
}

/// Returns the server's name for a level of effort; `None` for the default. Most servers know no level above `high`.
fn effort(effort: Option<Effort>) -> Option<&'static str> {
    effort.map(|effort| match effort {
        Effort::Low | Effort::Medium | Effort::High => effort.as_str(),
        Effort::Xhigh | Effort::Max => Effort::High.as_str(),
    })
}

pub(super) fn unserialisable(error: &serde_json::Error) -> ProviderError {
    ProviderError::new("invalid_request_error", format!("the request cannot be written as JSON: {error}"))
}

#[derive(Serialize)]
struct Prefix<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Temperature>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    /// The system prompt. This is the last field, because the messages of the conversation follow in the same list.
    messages: Vec<System<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: DeclaredFunction<'a>,
}

#[derive(Serialize)]
struct DeclaredFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
struct System<'a> {
    role: &'static str,
    content: &'a str,
}
