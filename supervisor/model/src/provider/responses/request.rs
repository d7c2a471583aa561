use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::messages::MessageText;
use crate::provider::{
    Effort, ModelRequest, ProviderError, RequestOptions, Temperature, Thinking, ThinkingDisplay,
};

/// Value of the field `include` that requests encrypted reasoning, which the server accepts in later requests.
const INCLUDE: [&str; 1] = ["reasoning.encrypted_content"];

/// Prefixes of the names of models without encrypted reasoning: "Encrypted content is not supported with this model."
const WITHOUT_REASONING: [&str; 4] = ["gpt-3.5", "gpt-4", "chatgpt-4o", "computer-use"];

/// Returns the JSON of a request. The input comes last, so that the next request begins with the same bytes.
pub(super) fn body(request: &ModelRequest, texts: &[MessageText]) -> Result<Bytes, ProviderError> {
    let prefix = prefix(request).map_err(|error| unserialisable(&error))?;
    let length = prefix.len() + texts.iter().map(|text| text.json.len() + 1).sum::<usize>();
    let mut body = Vec::with_capacity(length + 16);
    // The prefix is an object without `input`, which replaces its closing brace.
    body.extend_from_slice(&prefix[..prefix.len() - 1]);
    body.extend_from_slice(br#","input":["#);
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&text.json);
    }
    body.extend_from_slice(b"]}");
    Ok(body.into())
}

fn prefix(request: &ModelRequest) -> Result<Vec<u8>, serde_json::Error> {
    let tools = request.tools.iter().map(|tool| ResponsesTool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.input_schema,
        strict: false,
    });
    serde_json::to_vec(&ResponsesPrefix {
        model: &request.model,
        instructions: &request.system,
        tools: tools.collect(),
        max_output_tokens: request.max_tokens,
        temperature: request.options.temperature,
        reasoning: ReasoningOptions::of(&request.options),
        stream: true,
        store: false,
        include: if reasons(&request.model) { &INCLUDE } else { &[] },
    })
}

/// True if the name is not that of a model without encrypted reasoning. A gateway may put a vendor before the name.
fn reasons(model: &str) -> bool {
    let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
    !WITHOUT_REASONING.iter().any(|beginning| name.starts_with(beginning))
}

pub(super) fn unserialisable(error: &serde_json::Error) -> ProviderError {
    ProviderError::new("invalid_request_error", format!("the request cannot be written as JSON: {error}"))
}

#[derive(Serialize)]
struct ResponsesPrefix<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Temperature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningOptions>,
    stream: bool,
    /// Always false: the server must not store the response, because Bailiwick could not delete it.
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
    strict: bool,
}

/// Options for reasoning. This API has no token budgets for reasoning.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct ReasoningOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

impl ReasoningOptions {
    fn of(options: &RequestOptions) -> Option<Self> {
        let effort = match (options.thinking, options.effort) {
            (Thinking::Off, _) => Some("none"),
            // The highest level that this API has.
            (_, Some(Effort::Max)) => Some(Effort::Xhigh.as_str()),
            (_, effort) => effort.map(Effort::as_str),
        };
        let summary = match options.thinking {
            Thinking::Adaptive { display: Some(ThinkingDisplay::Summarized) } => Some("auto"),
            _ => None,
        };
        (effort.is_some() || summary.is_some()).then_some(Self { effort, summary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_is_said_of_reasoning() {
        let of = |thinking, effort| {
            let said =
                ReasoningOptions::of(&RequestOptions { effort, thinking, ..RequestOptions::default() });
            said.map(|said| serde_json::to_string(&said).expect("JSON"))
        };
        let summarized = Thinking::Adaptive { display: Some(ThinkingDisplay::Summarized) };
        assert_eq!(of(Thinking::ByModel, None), None);
        assert_eq!(of(Thinking::Budget { tokens: 2048 }, None), None);
        assert_eq!(of(Thinking::ByModel, Some(Effort::Low)).as_deref(), Some(r#"{"effort":"low"}"#));
        assert_eq!(of(Thinking::ByModel, Some(Effort::Max)).as_deref(), Some(r#"{"effort":"xhigh"}"#));
        assert_eq!(of(Thinking::Off, Some(Effort::High)).as_deref(), Some(r#"{"effort":"none"}"#));
        let both = Some(r#"{"effort":"high","summary":"auto"}"#);
        assert_eq!(of(summarized, Some(Effort::High)).as_deref(), both);
    }

    #[test]
    fn reasoning_is_asked_for_where_a_model_may_have_it() {
        for (model, expected) in [
            ("gpt-5.6", true),
            ("o4-mini", true),
            ("grok-4.3", true),
            ("openai/gpt-oss-20b", true),
            ("gpt-4o-mini", false),
            ("openai/gpt-4.1", false),
        ] {
            assert_eq!(reasons(model), expected, "{model}");
        }
    }
}
