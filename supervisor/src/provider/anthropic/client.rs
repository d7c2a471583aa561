//! The Messages API over HTTPS.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};

use super::config::{self, Config, ConfigError};
use super::error::{self, Failure};
use super::history::History;
use super::request;
use crate::provider::http::{self, Http, Timeouts};
use crate::provider::key::ApiKey;
use crate::provider::reply::{Context, Reply};
use crate::provider::{EventStream, ModelProvider, ModelRequest, ProviderError};

/// How much of the body of an error is read.
const MAX_ERROR_BODY: usize = 64 * 1024;

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Anthropic's Messages API, or anything that speaks it.
pub struct Anthropic {
    endpoint: Arc<Endpoint>,
    history: History,
    notices: Vec<String>,
}

/// What each request needs.
struct Endpoint {
    client: Client,
    url: Url,
    key: Arc<ApiKey>,
    version: &'static str,
    timeouts: Timeouts,
}

impl Anthropic {
    /// A client for the address and with the key of `config`. Nothing is sent yet.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let base = config::base_url(&config.base_url)?;
        let key = ApiKey::new(config.api_key, config.key_origin)?;
        let Http { client, notices } = Http::new(&base, config.timeouts)?;
        let endpoint = Endpoint {
            client,
            url: config::endpoint(&base),
            key: Arc::new(key),
            version: config.version.as_str(),
            timeouts: config.timeouts,
        };
        Ok(Self { endpoint: Arc::new(endpoint), history: History::default(), notices })
    }

    /// What a person should know: bundled certificates in use, or a key that is sent in the clear.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The host that requests go to.
    pub fn host(&self) -> String {
        http::host(&self.endpoint.url)
    }

    /// The exact bytes that [`ModelProvider::stream`] sends for a request.
    pub fn body(&self, request: &ModelRequest) -> Result<Bytes, ProviderError> {
        request::body(request, &self.history)
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
        let start = Attempt::Start(Arc::clone(&self.endpoint), self.body(&request));
        Box::pin(stream::unfold(start, Attempt::next))
    }
}

/// An attempt, from the request to the reply's last event. Dropping it closes the connection (E5).
enum Attempt {
    Start(Arc<Endpoint>, Result<Bytes, ProviderError>),
    Reading(Box<Reply>),
    Ended,
}

type Item = Result<crate::provider::StreamEvent, ProviderError>;

impl Attempt {
    async fn next(self) -> Option<(Item, Self)> {
        let mut reply = match self {
            Self::Start(endpoint, body) => match endpoint.attempt(body).await {
                Ok(reply) => Box::new(reply),
                Err(error) => return Some((Err(error), Self::Ended)),
            },
            Self::Reading(reply) => reply,
            Self::Ended => return None,
        };
        let item = reply.next().await?;
        let rest = if item.is_ok() { Self::Reading(reply) } else { Self::Ended };
        Some((item, rest))
    }
}

impl Endpoint {
    async fn attempt(&self, body: Result<Bytes, ProviderError>) -> Result<Reply, ProviderError> {
        self.send(body?).await.map_err(|error| self.key.redact(error))
    }

    async fn send(&self, body: Bytes) -> Result<Reply, ProviderError> {
        tracing::debug!(host = %http::host(&self.url), bytes = body.len(), "model request");
        let request = self.client.post(self.url.clone()).headers(self.headers()).body(body);
        let response = request.send().await.map_err(|error| self.connection_error(&error))?;
        let request_id = error::request_id(response.headers()).map(|id| self.key.hide(&id));
        tracing::debug!(status = response.status().as_u16(), request_id, "model reply");
        if response.status() != StatusCode::OK {
            return Err(self.failure(response).await);
        }
        let (url, timeouts) = (self.url.clone(), self.timeouts);
        let bytes = response
            .bytes_stream()
            .map(move |chunk| chunk.map_err(|error| http::connection_error(&error, &url, timeouts)));
        Ok(Reply::new(bytes, Context { request_id, key: Arc::clone(&self.key) }))
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(VERSION, HeaderValue::from_static(self.version));
        if let Some(key) = self.key.header() {
            headers.insert(KEY, key);
        }
        headers
    }

    async fn failure(&self, response: Response) -> ProviderError {
        let status = response.status();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        // What cannot be read is not worth another error: the status says enough.
        while body.len() < MAX_ERROR_BODY
            && let Some(Ok(chunk)) = chunks.next().await
        {
            body.extend_from_slice(&chunk);
        }
        Failure { status, headers: &headers, body: &body, key: &self.key }.into_error()
    }

    fn connection_error(&self, error: &reqwest::Error) -> ProviderError {
        http::connection_error(error, &self.url, self.timeouts)
    }
}
