use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::ApiVersion;
use super::message;
use super::places::CachePlaces;
use crate::provider::messages::MessageText;
use crate::provider::{
    CacheLifetime, ModelRequest, ProviderError, RequestOptions, Temperature, Thinking, ThinkingDisplay,
};

pub(super) const CACHE_MARKER: &str = r#""cache_control":{"type":"ephemeral"}"#;

const MAX_BODY: usize = 32 * 1000 * 1000;

/// Minimum thinking budget that the API accepts, in tokens.
const MIN_BUDGET: u32 = 1024;

/// Returns the JSON of a request. Parts that stay the same come first, so that the provider finds them in its cache.
/// Options that are not set are left out.
pub(super) fn body(
    request: &ModelRequest,
    version: ApiVersion,
    texts: &[MessageText],
) -> Result<Bytes, ProviderError> {
    let prefix = prefix(request, version).map_err(|error| unserialisable(&error))?;
    let places = CachePlaces::of(texts);
    let length = prefix.len() + texts.iter().map(|text| text.json.len() + 64).sum::<usize>();
    let mut body = Vec::with_capacity(length + 16);
    // The prefix is an object without `messages`, which replace its closing brace.
    body.extend_from_slice(&prefix[..prefix.len() - 1]);
    body.extend_from_slice(br#","messages":["#);
    write_messages(texts, places, &mut body);
    body.extend_from_slice(b"]}");
    if body.len() > MAX_BODY {
        let message = format!(
            "the request has {} bytes, and the API accepts at most {MAX_BODY}: start a new conversation, or read less at once",
            body.len()
        );
        return Err(ProviderError::new("request_too_large", message));
    }
    Ok(body.into())
}

fn write_messages(texts: &[MessageText], places: CachePlaces, body: &mut Vec<u8>) {
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        message::write(text, places.contains(index), body);
    }
}

fn prefix(request: &ModelRequest, version: ApiVersion) -> Result<Vec<u8>, serde_json::Error> {
    let has_system = !request.system.is_empty();
    let last = request.tools.len().saturating_sub(1);
    // Parts that are cached longer come first, and tools and system prompt come before everything else.
    let cache_control = CacheControl::of(request.options.cache);
    let tools = request.tools.iter().enumerate().map(|(index, tool)| AnthropicTool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.input_schema,
        // Without a system prompt, the last tool has the marker.
        cache_control: (!has_system && index == last).then_some(cache_control),
    });
    let system =
        has_system.then(|| [AnthropicSystem { r#type: "text", text: &request.system, cache_control }]);
    serde_json::to_vec(&AnthropicPrefix {
        model: &request.model,
        max_tokens: request.max_tokens,
        stream: true,
        temperature: temperature(&request.options, version),
        thinking: thinking(request),
        output_config: request.options.effort.map(|effort| OutputConfig { effort: effort.as_str() }),
        tools: tools.collect(),
        system,
    })
}

/// Returns the `thinking` field. A budget outside of the API's limits is raised or lowered to the limit; `None` if the
/// model decides, or the reply is too short for any budget.
fn thinking(request: &ModelRequest) -> Option<ThinkingConfig> {
    match request.options.thinking {
        Thinking::ByModel => None,
        Thinking::Off => Some(ThinkingConfig::Disabled),
        Thinking::Adaptive { display } => {
            Some(ThinkingConfig::Adaptive { display: display.map(ThinkingDisplay::as_str) })
        }
        Thinking::Budget { tokens } => {
            let most = request.max_tokens.saturating_sub(1);
            let budget_tokens = tokens.max(MIN_BUDGET).min(most);
            (budget_tokens >= MIN_BUDGET).then_some(ThinkingConfig::Enabled { budget_tokens })
        }
    }
}

/// Returns the temperature if the API accepts one: version 2026-10-21 never does, older versions do without thinking.
fn temperature(options: &RequestOptions, version: ApiVersion) -> Option<Temperature> {
    let thinks = matches!(options.thinking, Thinking::Adaptive { .. } | Thinking::Budget { .. });
    options.temperature.filter(|_| version == ApiVersion::V2023_06_01 && !thinks)
}

pub(super) fn unserialisable(error: &serde_json::Error) -> ProviderError {
    ProviderError::new("invalid_request_error", format!("the request cannot be written as JSON: {error}"))
}

#[derive(Serialize)]
struct AnthropicPrefix<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Temperature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[AnthropicSystem<'a>; 1]>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThinkingConfig {
    Disabled,
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Enabled {
        budget_tokens: u32,
    },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct AnthropicSystem<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    const fn of(lifetime: CacheLifetime) -> Self {
        let ttl = match lifetime {
            // This is the API's default. Gateways that know no lifetimes accept it, too.
            CacheLifetime::FiveMinutes => None,
            CacheLifetime::OneHour => Some("1h"),
        };
        Self { r#type: "ephemeral", ttl }
    }
}
