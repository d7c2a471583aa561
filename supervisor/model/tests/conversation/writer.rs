//! Serialises requests as bodies for each API, without a server.

use bytes::Bytes;
use model::provider::anthropic::{Anthropic, AnthropicConfig, ApiVersion};
use model::provider::chat::{self, OpenAiChat};
use model::provider::responses::Responses;
use model::provider::{ModelRequest, ProviderKind};

pub(crate) enum Writer {
    Messages(Anthropic),
    Chat(OpenAiChat),
    Responses(Responses),
}

impl Writer {
    pub(crate) fn new(kind: ProviderKind) -> Self {
        let connection = kind.connection(None, None, String::new());
        match kind {
            ProviderKind::Anthropic => {
                Self::Messages(Anthropic::new(AnthropicConfig::at(connection)).expect("it"))
            }
            ProviderKind::OpenAi => Self::Chat(OpenAiChat::new(chat::Config::at(connection)).expect("it")),
            ProviderKind::Responses => Self::Responses(Responses::new(connection).expect("it")),
        }
    }

    pub(crate) fn of_version(version: ApiVersion) -> Self {
        Self::Messages(
            Anthropic::new(AnthropicConfig { version, ..AnthropicConfig::new(None) }).expect("a provider"),
        )
    }

    pub(crate) const fn kind(&self) -> ProviderKind {
        match self {
            Self::Messages(_) => ProviderKind::Anthropic,
            Self::Chat(_) => ProviderKind::OpenAi,
            Self::Responses(_) => ProviderKind::Responses,
        }
    }

    pub(crate) fn body(&self, request: &ModelRequest) -> Bytes {
        let body = match self {
            Self::Messages(provider) => provider.body(request),
            Self::Chat(provider) => provider.body(request),
            Self::Responses(provider) => provider.body(request),
        };
        body.expect("a body")
    }
}
