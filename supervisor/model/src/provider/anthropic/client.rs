use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::config::AnthropicConfig;
use super::message;
use super::{AnthropicDecoder, ApiVersion, request};
use crate::provider::blame::SentMessages;
use crate::provider::connection::ConfigError;
use crate::provider::endpoint::{Dialect, Endpoint, OutgoingRequest, bearer};
use crate::provider::fit::{FitRules, IdForm};
use crate::provider::key::ProviderApiKey;
use crate::provider::messages::Messages;
use crate::provider::reply::HttpReply;
use crate::provider::{
    Credential, EventStream, ModelProvider, ModelRequest, ProviderError, ProviderKind, RequestOptions,
    Thinking,
};

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const KEY: HeaderName = HeaderName::from_static("x-api-key");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// Beta feature that lets a model with a thinking budget think between tool calls as well.
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";

/// Rules for the messages that the API accepts.
const RULES: FitRules = FitRules { kind: ProviderKind::Anthropic, ids: IdForm::Words };

pub struct Anthropic {
    endpoint: Arc<Endpoint>,
    version: ApiVersion,
    messages: Messages,
}

impl Anthropic {
    pub fn new(config: AnthropicConfig) -> Result<Self, ConfigError> {
        let version = HeaderValue::from_static(config.version.as_str());
        let dialect = Dialect {
            kind: ProviderKind::Anthropic,
            path: "/v1/messages",
            headers: HeaderMap::from_iter([(VERSION, version)]),
            key_header: match config.connection.credential {
                Credential::ApiKey => api_key,
                Credential::Bearer => bearer,
            },
            decoder: || Box::new(AnthropicDecoder::new()),
        };
        let endpoint = Arc::new(Endpoint::new(config.connection, dialect)?);
        Ok(Self { endpoint, version: config.version, messages: Messages::new(message::serialise, RULES) })
    }

    pub fn notices(&self) -> &[String] {
        self.endpoint.notices()
    }

    pub fn host(&self) -> String {
        self.endpoint.host()
    }

    pub fn body(&self, request: &ModelRequest) -> Result<Bytes, ProviderError> {
        Ok(self.outgoing(request)?.body)
    }

    fn outgoing(&self, request: &ModelRequest) -> Result<OutgoingRequest, ProviderError> {
        let texts = self.messages.texts(request).map_err(|error| request::unserialisable(&error))?;
        let body = request::body(request, self.version, &texts)?;
        Ok(OutgoingRequest { sent: SentMessages::of(0, &texts), ..body.into() })
    }

    pub async fn send(&self, body: Bytes) -> Result<HttpReply, ProviderError> {
        self.endpoint.attempt(Ok(body)).await
    }
}

impl ModelProvider for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let headers = betas(&request.options).map(|betas| (BETA, betas)).into_iter().collect();
        Arc::clone(&self.endpoint)
            .stream(self.outgoing(&request).map(|outgoing| OutgoingRequest { headers, ..outgoing }))
    }
}

/// Returns the beta features that a request uses, separated by commas; `None` without any.
const fn betas(options: &RequestOptions) -> Option<HeaderValue> {
    match options.thinking {
        Thinking::Budget { .. } => Some(HeaderValue::from_static(INTERLEAVED_THINKING)),
        Thinking::ByModel | Thinking::Off | Thinking::Adaptive { .. } => None,
    }
}

pub(in crate::provider) fn api_key(key: &ProviderApiKey) -> HeaderMap {
    key.header().map(|value| (KEY, value)).into_iter().collect()
}
