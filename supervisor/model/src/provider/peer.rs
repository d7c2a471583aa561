use reqwest::Url;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ProviderError, ProviderKind};

/// Values of `type` that can begin a stream of the Messages API; `message` begins a reply without a stream.
const MESSAGES: [&str; 4] = ["message_start", "content_block_start", "message_delta", "message"];

#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// The API that the request was for; `None` for a recorded reply, which can be of any API.
    pub kind: Option<ProviderKind>,
    pub url: Option<Url>,
    pub chosen_by: Option<String>,
}

impl Peer {
    /// Returns an error that is not retryable if the data is of another API than expected, else `None`.
    pub(crate) fn mismatch(&self, data: &str) -> Option<ProviderError> {
        let expected = self.kind?;
        let spoken = api_of(data).filter(|kind| *kind != expected)?;
        let error = self.foreign(&format!("the server answers in {}", spoken.api()));
        Some(error.hint(format!("try --provider {}{}", spoken.as_str(), self.choice())))
    }

    /// Returns an error that is not retryable if a reply without a stream is of another API than expected, else `None`.
    pub(crate) fn mismatch_of_whole(&self, json: &str) -> Option<ProviderError> {
        let members: Members<'_> = serde_json::from_str(json.trim_start_matches('\u{feff}')).ok()?;
        match members.api() {
            None if self.kind.is_some() && !members.is_error() => {
                Some(self.foreign("the server answers in JSON of another kind"))
            }
            _ => self.mismatch(json),
        }
    }

    pub(crate) fn foreign(&self, found: &str) -> ProviderError {
        let expected = self.kind.map_or("the expected API", ProviderKind::api);
        let message = format!("{} does not speak {expected}: {found}", self.name());
        let hint = format!("check --base-url and any proxy{}", self.choice());
        ProviderError::new("invalid_response", message).hint(hint)
    }

    /// Returns the hint for a server that does not have the API at the requested address.
    pub(crate) fn not_found(&self) -> String {
        let asked = self.url.as_ref().map_or("the address", Url::as_str);
        format!("check --base-url and --provider: nothing is at {asked}{}", self.choice())
    }

    /// True if the server is at a Unix socket. Such a server is a relay, which has a budget of its own.
    pub(crate) fn is_socket(&self) -> bool {
        self.url.as_ref().is_some_and(|url| url.scheme() == "unix")
    }

    fn name(&self) -> String {
        self.url.as_ref().map_or_else(|| "the server".to_owned(), |url| format!("the server at {url}"))
    }

    fn choice(&self) -> String {
        self.chosen_by.as_ref().map_or_else(String::new, |why| format!(" ({why})"))
    }
}

/// Returns the API of an event or a reply; `None` if its fields do not show the API, as those of an error.
fn api_of(data: &str) -> Option<ProviderKind> {
    serde_json::from_str::<Members<'_>>(data.trim_start_matches('\u{feff}')).ok()?.api()
}

/// Fields that distinguish the APIs.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<&'a RawValue>,
}

impl Members<'_> {
    fn api(&self) -> Option<ProviderKind> {
        let (kind, object) = (word(self.kind), word(self.object));
        if self.choices.is_some() || object.starts_with("chat.completion") {
            Some(ProviderKind::OpenAi)
        } else if kind.starts_with("response.") || object == "response" || self.output.is_some() {
            Some(ProviderKind::Responses)
        } else if MESSAGES.contains(&kind) {
            Some(ProviderKind::Anthropic)
        } else {
            None
        }
    }

    fn is_error(&self) -> bool {
        self.error.is_some() || self.message.is_some() || self.detail.is_some()
    }
}

/// Returns the text of a JSON string, without decoding escapes.
fn word(raw: Option<&RawValue>) -> &str {
    raw.map_or("", |raw| raw.get().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_shows_its_api_and_an_error_shows_none() {
        for (data, expected) in [
            (r#"{"type":"message_start","message":{"id":"m"}}"#, Some(ProviderKind::Anthropic)),
            (r#"{"type":"message","content":[]}"#, Some(ProviderKind::Anthropic)),
            (r#"{"object":"chat.completion.chunk","choices":[]}"#, Some(ProviderKind::OpenAi)),
            (r#"{"choices":[{"delta":{}}]}"#, Some(ProviderKind::OpenAi)),
            (r#"{"type":"response.created","response":{}}"#, Some(ProviderKind::Responses)),
            (r#"{"object":"response","status":"completed","error":null}"#, Some(ProviderKind::Responses)),
            (r#"{"type":"error","error":{"type":"overloaded_error"}}"#, None),
            (r#"{"type":"ping"}"#, None),
            (r#"{"error":"no such model"}"#, None),
            (r#"{"type":5,"choices":null,"object":["x"]}"#, None),
            ("[DONE]", None),
            ("", None),
        ] {
            assert_eq!(api_of(data), expected, "{data}");
        }
    }

    #[test]
    fn a_mismatch_names_both_apis_the_flag_that_mends_it_and_the_reason_of_the_choice() {
        let url = "http://127.0.0.1:9/v1/chat/completions".parse().ok();
        let chosen_by = Some("openai follows from the model's name".to_owned());
        let peer = Peer { kind: Some(ProviderKind::OpenAi), url, chosen_by };
        let error = peer.mismatch(r#"{"type":"message_start"}"#).expect("another API");
        assert!(!error.retryable);
        assert_eq!(
            error.message,
            "the server at http://127.0.0.1:9/v1/chat/completions does not speak OpenAI chat completions: \
             the server answers in Anthropic messages"
        );
        assert_eq!(
            error.hint.as_deref(),
            Some("try --provider anthropic (openai follows from the model's name)")
        );
        assert!(peer.mismatch(r#"{"choices":[]}"#).is_none());
        assert!(peer.mismatch_of_whole(r#"{"error":"no such model"}"#).is_none());
        let other = peer.mismatch_of_whole(r#"{"status":"ok"}"#).expect("no API");
        assert!(
            !other.retryable && other.message.ends_with("the server answers in JSON of another kind"),
            "{other}"
        );
    }
}
