use std::sync::Arc;

use secrecy::SecretString;

use super::anthropic::{self, Anthropic, ApiVersion};
use super::chat::{self, OpenAiChat};
use super::decode::Decode;
use super::responses::{self, Responses};
use super::{ConfigError, Connection, Credential, ModelProvider, Timeouts, connection};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProviderKind {
    #[default]
    Anthropic,
    OpenAi,
    Responses,
}

pub struct Opened {
    pub provider: Arc<dyn ModelProvider>,
    pub notices: Vec<String>,
}

/// Makes a provider, without sending anything. `version` has a meaning only for the Messages API.
pub fn open(kind: ProviderKind, connection: Connection, version: ApiVersion) -> Result<Opened, ConfigError> {
    Ok(match kind {
        ProviderKind::Anthropic => {
            let config = anthropic::AnthropicConfig { version, ..anthropic::AnthropicConfig::at(connection) };
            let provider = Anthropic::new(config)?;
            let notices = provider.notices().to_vec();
            Opened { provider: Arc::new(provider), notices }
        }
        ProviderKind::OpenAi => {
            let provider = OpenAiChat::new(chat::Config::at(connection))?;
            let notices = provider.notices().to_vec();
            Opened { provider: Arc::new(provider), notices }
        }
        ProviderKind::Responses => {
            let provider = Responses::new(connection)?;
            let notices = provider.notices().to_vec();
            Opened { provider: Arc::new(provider), notices }
        }
    })
}

impl ProviderKind {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Responses];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Responses => "responses",
        }
    }

    pub const fn api(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic messages",
            Self::OpenAi => "OpenAI chat completions",
            Self::Responses => "OpenAI responses",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the vendor's name, which is also that of the key's file. A vendor's APIs have the same key and address.
    pub const fn vendor(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi | Self::Responses => "openai",
        }
    }

    pub const fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi | Self::Responses => "OPENAI_API_KEY",
        }
    }

    pub const fn address_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi | Self::Responses => "OPENAI_BASE_URL",
        }
    }

    pub const fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => anthropic::BASE_URL,
            Self::OpenAi | Self::Responses => chat::BASE_URL,
        }
    }

    /// Returns a connection to `base_url`, or to the vendor's own server if it is `None`.
    pub fn connection(
        self,
        base_url: Option<String>,
        api_key: Option<SecretString>,
        key_origin: String,
    ) -> Connection {
        let base_url = base_url.unwrap_or_else(|| self.base_url().to_owned());
        Connection {
            base_url,
            api_key,
            key_origin,
            credential: Credential::default(),
            chosen_by: None,
            timeouts: Timeouts::default(),
            recorder: None,
        }
    }

    /// True if requests without a key would fail. Of all servers, only the vendor's own is known to need a key.
    pub fn needs_key(self, base_url: &str) -> bool {
        // The relay has the key.
        if connection::socket_of(base_url).is_some() {
            return false;
        }
        let host = |text: &str| Some(connection::base_url(text).ok()?.host_str()?.to_owned());
        match self {
            Self::Anthropic => true,
            Self::OpenAi | Self::Responses => {
                host(base_url).is_some_and(|given| Some(given) == host(self.base_url()))
            }
        }
    }

    pub fn decoder(self) -> Box<dyn Decode> {
        match self {
            Self::Anthropic => Box::new(anthropic::AnthropicDecoder::new()),
            Self::OpenAi => Box::new(chat::Decoder::new()),
            Self::Responses => Box::new(responses::ResponsesDecoder::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_name_which_is_the_providers() {
        for kind in ProviderKind::ALL {
            assert_eq!(ProviderKind::named(kind.as_str()), Some(kind));
            let connection = kind.connection(None, None, String::new());
            let opened = open(kind, connection, ApiVersion::default()).expect("its own address");
            assert_eq!(opened.provider.name(), kind.as_str());
        }
        assert_eq!(ProviderKind::named("open ai"), None);
    }

    #[test]
    fn only_the_vendors_own_address_is_known_to_want_a_key() {
        for (base_url, expected) in [
            ("https://api.openai.com", true),
            ("https://api.openai.com/v1/", true),
            ("http://127.0.0.1:8080", false),
            ("https://models.example/v1", false),
            ("no address", false),
        ] {
            for kind in [ProviderKind::OpenAi, ProviderKind::Responses] {
                assert_eq!(kind.needs_key(base_url), expected, "{base_url}");
            }
        }
        assert!(ProviderKind::Anthropic.needs_key("http://127.0.0.1:8080"));
        assert!(ProviderKind::ALL.iter().all(|kind| !kind.needs_key("unix:/run/relay.sock")));
    }
}
