use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};

use super::blame::SentMessages;
use super::connection::{self, ConfigError, Connection};
use super::connection_error::connection_error;
use super::deadlines::{self, Deadlines};
use super::decode::Decode;
use super::failure::{self, Failure};
use super::http::{self, Http, Way};
use super::key::ProviderApiKey;
use super::peer::Peer;
use super::reply::{Context, HttpReply};
use super::second_look::looked_at;
use super::{EventStream, ProviderError, ProviderKind, StreamEvent};
use crate::recording::{Ending, Exchange, ExchangeHead, Recorder};

const MAX_ERROR_BODY: usize = 64 * 1024;

pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    way: Way,
    headers: HeaderMap,
    key: Arc<ProviderApiKey>,
    key_header: fn(&ProviderApiKey) -> HeaderMap,
    decoder: fn() -> Box<dyn Decode>,
    notices: Vec<String>,
    recorder: Option<Recorder>,
    peer: Arc<Peer>,
    path: &'static str,
}

/// One request to the endpoint, with the headers that only this request has.
pub(crate) struct OutgoingRequest {
    pub body: Bytes,
    pub headers: HeaderMap,
    /// A decoder that depends on the conversation; `None` for the API's usual decoder.
    pub decoder: Option<Box<dyn Decode>>,
    /// The messages of the request, to find the message that an error names.
    pub sent: SentMessages,
}

impl From<Bytes> for OutgoingRequest {
    fn from(body: Bytes) -> Self {
        Self { body, headers: HeaderMap::new(), decoder: None, sent: SentMessages::default() }
    }
}

pub(crate) struct Dialect {
    pub kind: ProviderKind,
    pub path: &'static str,
    /// Headers of every request, in addition to content type and key.
    pub headers: HeaderMap,
    pub key_header: fn(&ProviderApiKey) -> HeaderMap,
    pub decoder: fn() -> Box<dyn Decode>,
}

impl Endpoint {
    pub(crate) fn new(connection: Connection, dialect: Dialect) -> Result<Self, ConfigError> {
        let base = connection::base_url(&connection.base_url)?;
        let key = ProviderApiKey::new(connection.api_key, connection.key_origin)?;
        let Http { client, notices, way } = Http::new(&base, connection.timeouts, key.is_set())?;
        let mut headers = dialect.headers;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        let url = connection::endpoint(&base, dialect.path);
        let asked = if connection::socket_path(&base).is_some() { base.clone() } else { url.clone() };
        let peer = Peer { kind: Some(dialect.kind), url: Some(asked), chosen_by: connection.chosen_by };
        Ok(Self {
            client,
            url,
            way,
            headers,
            key: Arc::new(key),
            key_header: dialect.key_header,
            decoder: dialect.decoder,
            notices,
            recorder: connection.recorder,
            peer: Arc::new(peer),
            path: dialect.path,
        })
    }

    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    pub(crate) fn host(&self) -> String {
        http::host(&self.way.base)
    }

    /// Sends a request. If `request` is an `Err`, the stream has only that error.
    pub(crate) fn stream(
        self: Arc<Self>,
        request: Result<impl Into<OutgoingRequest>, ProviderError>,
    ) -> EventStream {
        let start = RequestAttempt::Start(self, request.map(Into::into));
        Box::pin(stream::unfold(start, RequestAttempt::next))
    }

    pub(crate) async fn attempt(
        &self,
        request: Result<impl Into<OutgoingRequest>, ProviderError>,
    ) -> Result<HttpReply, ProviderError> {
        let outgoing = request?.into();
        let sent = outgoing.sent.clone();
        self.send(outgoing).await.map_err(|error| self.key.redact(sent.blamed(error)))
    }

    async fn send(&self, mut outgoing: OutgoingRequest) -> Result<HttpReply, ProviderError> {
        let conversation = std::mem::take(&mut outgoing.sent);
        tracing::debug!(host = %self.host(), bytes = outgoing.body.len(), "model request");
        let mut headers = self.headers.clone();
        headers.extend(outgoing.headers);
        let mut exchange = self.recorded(&headers, &outgoing.body);
        headers.extend((self.key_header)(&self.key));
        let request = self.client.post(self.url.clone()).headers(headers).body(outgoing.body);
        let deadlines = Deadlines::begin(self.host(), self.way.timeouts);
        let sent = deadlines.head(request.send()).await;
        if let Some(exchange) = &mut exchange {
            match &sent {
                Ok(Ok(response)) => exchange.answered(response.status().as_u16(), response.headers()),
                Ok(Err(_)) | Err(_) => exchange.end(Ending::Cut),
            }
        }
        let response = match sent? {
            Ok(response) => response,
            Err(error) => {
                return Err(looked_at(connection_error(&error, &self.way), &self.way).await);
            }
        };
        let request_id = failure::request_id(response.headers()).map(|id| self.key.hide(&id));
        tracing::debug!(status = response.status().as_u16(), request_id, "model reply");
        if response.status() != StatusCode::OK {
            return Err(self.failure(response, deadlines, exchange).await);
        }
        if let Some(encoding) = foreign_encoding(response.headers()) {
            return Err(unreadable(&encoding));
        }
        let context = Context {
            request_id,
            key: Arc::clone(&self.key),
            progress: Some(deadlines.progress()),
            peer: Arc::clone(&self.peer),
            sent: conversation,
        };
        let decoder = outgoing.decoder.unwrap_or_else(self.decoder);
        Ok(HttpReply::new(self.body(response, deadlines, exchange), decoder, context))
    }

    fn recorded(&self, headers: &HeaderMap, body: &Bytes) -> Option<Exchange> {
        let head = ExchangeHead { path: self.url.path(), endpoint: self.path, headers };
        self.recorder.as_ref()?.exchange(head, body, self.key.secret())
    }

    fn body(
        &self,
        response: Response,
        deadlines: Deadlines,
        exchange: Option<Exchange>,
    ) -> deadlines::TimedBody {
        let way = self.way.clone();
        let bytes = response.bytes_stream();
        let bytes = bytes.map(move |chunk| chunk.map_err(|error| connection_error(&error, &way)));
        let body = deadlines.body(bytes);
        match exchange {
            None => body,
            Some(exchange) => Box::pin(exchange.tapped(body)),
        }
    }

    async fn failure(
        &self,
        response: Response,
        deadlines: Deadlines,
        exchange: Option<Exchange>,
    ) -> ProviderError {
        let status = response.status();
        let headers = response.headers().clone();
        let (mut body, deadline) = (Vec::new(), deadlines.of_error());
        let mut chunks = self.body(response, deadlines, exchange);
        // If the body cannot be read, the status is enough.
        while body.len() < MAX_ERROR_BODY
            && let Ok(Some(Ok(chunk))) = tokio::time::timeout_at(deadline, chunks.next()).await
        {
            body.extend_from_slice(&chunk);
        }
        Failure { status, headers: &headers, body: &body, key: &self.key, peer: &self.peer }.into_error()
    }
}

/// Returns the encoding of a compressed body other than gzip, which cannot be decoded; `None` for any other body.
fn foreign_encoding(headers: &HeaderMap) -> Option<String> {
    let encoding = headers.get(CONTENT_ENCODING)?.to_str().unwrap_or_default();
    (encoding != "identity").then(|| failure::one_line(encoding))
}

fn unreadable(encoding: &str) -> ProviderError {
    let message =
        format!("the server sent its reply in the encoding {encoding:?}, which Bailiwick did not ask for");
    ProviderError::new("invalid_response", message).hint("check --base-url and any proxy")
}

pub(crate) fn bearer(key: &ProviderApiKey) -> HeaderMap {
    key.bearer().map(|value| (reqwest::header::AUTHORIZATION, value)).into_iter().collect()
}

/// An attempt, from sending the request to the reply's last event. Dropping this value closes the connection.
enum RequestAttempt {
    Start(Arc<Endpoint>, Result<OutgoingRequest, ProviderError>),
    Reading(Box<HttpReply>),
    Ended,
}

type StreamItem = Result<StreamEvent, ProviderError>;

impl RequestAttempt {
    async fn next(self) -> Option<(StreamItem, Self)> {
        let mut reply = match self {
            Self::Start(endpoint, request) => match endpoint.attempt(request).await {
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
