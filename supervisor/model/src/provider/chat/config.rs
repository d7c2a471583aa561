use reqwest::Url;
use secrecy::SecretString;

use crate::provider::connection::socket_path;
use crate::provider::fit::IdForm;
use crate::provider::http::Timeouts;
use crate::provider::{Connection, Credential};

pub const BASE_URL: &str = "https://api.openai.com";

/// Maximum length of a tool call's id, by the vendor's error "Expected a string with maximum length 40".
const LONGEST_ID: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyLimit {
    /// `max_tokens`, for llama.cpp, ollama, vLLM, Mistral and gateways.
    MaxTokens,
    /// `max_completion_tokens`: the vendor's own models accept no other field.
    MaxCompletionTokens,
}

#[derive(Debug)]
pub struct Config {
    pub connection: Connection,
    /// The field that limits the length of a reply; `None` for the field that the host is known to accept.
    pub reply_limit: Option<ReplyLimit>,
}

impl Config {
    pub fn new(api_key: Option<SecretString>) -> Self {
        Self::at(Connection {
            base_url: BASE_URL.to_owned(),
            api_key,
            key_origin: "OPENAI_API_KEY".to_owned(),
            credential: Credential::default(),
            chosen_by: None,
            timeouts: Timeouts::default(),
            recorder: None,
        })
    }

    pub const fn at(connection: Connection) -> Self {
        Self { connection, reply_limit: None }
    }
}

/// Properties of a server that follow from its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChatServer {
    pub(super) path: &'static str,
    pub(super) reply_limit: ReplyLimit,
    pub(super) ids: IdForm,
    /// True if the server accepts `stream_options`. Without this field most servers send no token counts.
    pub(super) takes_stream_options: bool,
    /// True if the server requires the reasoning of a thinking model in each message of the model.
    pub(super) wants_reasoning: bool,
}

impl ChatServer {
    pub(super) fn at(base: &Url) -> Self {
        let host = base.host_str().unwrap_or_default();
        let within = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        let reply_limit = if within("openai.com") || within("openai.azure.com") {
            ReplyLimit::MaxCompletionTokens
        } else {
            ReplyLimit::MaxTokens
        };
        let ids = match reply_limit {
            ReplyLimit::MaxCompletionTokens => IdForm::Visible(LONGEST_ID),
            // The ids that the server sent, because some servers parse them again.
            ReplyLimit::MaxTokens if within("mistral.ai") => IdForm::Nine,
            ReplyLimit::MaxTokens => IdForm::Visible(usize::MAX),
        };
        // Mistral always sends token counts, and rejects unknown fields.
        let wants_reasoning =
            ["deepseek.com", "moonshot.ai", "moonshot.cn", "kimi.com"].into_iter().any(within);
        Self {
            path: path(base),
            reply_limit,
            ids,
            takes_stream_options: !within("mistral.ai"),
            wants_reasoning,
        }
    }
}

/// Returns the path that an endpoint adds to a base URL. It has a version unless the base URL has one anywhere:
/// `https://gw.example/v1beta/openai`, `https://host/api/paas/v4`.
fn path(base: &Url) -> &'static str {
    if socket_path(base).is_some() {
        return "/v1/chat/completions";
    }
    let is_version = |segment: &str| {
        segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let is_versioned = base.path_segments().is_some_and(|mut segments| segments.any(is_version));
    if is_versioned { "/chat/completions" } else { "/v1/chat/completions" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::connection::{base_url, endpoint};

    #[test]
    fn a_base_url_is_told_with_its_version_or_without() {
        for (base, expected) in [
            ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/chat/completions"),
            ("https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1/chat/completions"),
            ("https://gw.example/team", "https://gw.example/team/v1/chat/completions"),
            ("https://gw.example/v1beta/openai/", "https://gw.example/v1beta/openai/chat/completions"),
            ("https://host/api/paas/v4", "https://host/api/paas/v4/chat/completions"),
            ("unix:/run/v1/relay.sock", "http://localhost/v1/chat/completions"),
            ("https://host/vienna", "https://host/vienna/v1/chat/completions"),
        ] {
            let base = base_url(base).expect(base);
            assert_eq!(endpoint(&base, ChatServer::at(&base).path).as_str(), expected);
        }
    }

    #[test]
    fn a_host_is_known_by_its_name_and_not_by_what_it_looks_like() {
        let server = |base: &str| ChatServer::at(&base_url(base).expect(base));
        assert_eq!(server(BASE_URL).reply_limit, ReplyLimit::MaxCompletionTokens);
        assert_eq!(server("https://x.openai.azure.com/v1").reply_limit, ReplyLimit::MaxCompletionTokens);
        assert_eq!(server("https://notopenai.com").reply_limit, ReplyLimit::MaxTokens);
        assert_eq!(server("http://127.0.0.1:1").reply_limit, ReplyLimit::MaxTokens);
        assert!(!server("https://api.mistral.ai/v1").takes_stream_options);
        assert!(server("http://localhost:11434").takes_stream_options);
        for thinking in
            ["https://api.deepseek.com", "https://api.moonshot.ai/v1", "https://api.kimi.com/coding"]
        {
            assert!(server(thinking).wants_reasoning, "{thinking}");
        }
        assert!(!server("https://notdeepseek.com").wants_reasoning);
    }
}
