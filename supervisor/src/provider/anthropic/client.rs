//! The Messages API over HTTPS.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::config::{Config, Credential};
use super::message::{self, Messages};
use super::{Decoder, request};
use crate::provider::connection::ConfigError;
use crate::provider::endpoint::{Dialect, Endpoint, bearer};
use crate::provider::key::ApiKey;
use crate::provider::reply::Reply;
use crate::provider::{EventStream, ModelProvider, ModelRequest, ProviderError};

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Anthropic's Messages API, or anything that speaks it.
pub struct Anthropic {
    endpoint: Arc<Endpoint>,
    messages: Messages,
}

impl Anthropic {
    /// A client for the address and with the key of `config`. Nothing is sent yet.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let version = HeaderValue::from_static(config.version.as_str());
        let dialect = Dialect {
            path: "/v1/messages",
            headers: HeaderMap::from_iter([(VERSION, version)]),
            key_header: match config.credential {
                Credential::ApiKey => api_key,
                Credential::Bearer => bearer,
            },
            decoder: || Box::new(Decoder::new()),
        };
        let endpoint = Arc::new(Endpoint::new(config.connection, dialect)?);
        Ok(Self { endpoint, messages: Messages::new(message::serialise) })
    }

    /// What a person should know: bundled certificates in use, or a key that is sent in the clear.
    pub fn notices(&self) -> &[String] {
        self.endpoint.notices()
    }

    /// The host that requests go to.
    pub fn host(&self) -> String {
        self.endpoint.host()
    }

    /// The exact bytes that [`ModelProvider::stream`] sends for a request.
    pub fn body(&self, request: &ModelRequest) -> Result<Bytes, ProviderError> {
        request::body(request, &self.messages)
    }

    /// Sends a body as it is.
    pub(crate) async fn send(&self, body: Bytes) -> Result<Reply, ProviderError> {
        self.endpoint.attempt(Ok(body)).await
    }
}

impl ModelProvider for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        Arc::clone(&self.endpoint).stream(self.body(&request))
    }
}

/// The key as `x-api-key`, where there is one.
fn api_key(key: &ApiKey) -> HeaderMap {
    key.header().map(|value| (KEY, value)).into_iter().collect()
}
