use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::HeaderMap;

use super::{ResponsesDecoder, message, request};
use crate::provider::blame::SentMessages;
use crate::provider::connection::{ConfigError, Connection};
use crate::provider::endpoint::{Dialect, Endpoint, OutgoingRequest, bearer};
use crate::provider::fit::{FitRules, IdForm};
use crate::provider::messages::Messages;
use crate::provider::reply::HttpReply;
use crate::provider::{EventStream, ModelProvider, ModelRequest, ProviderError, ProviderKind};

/// Maximum length of a call's id, by the API's error "Expected a string with maximum length 64".
const LONGEST_ID: usize = 64;

/// Rules for the messages that the API accepts.
const RULES: FitRules = FitRules { kind: ProviderKind::Responses, ids: IdForm::Visible(LONGEST_ID) };

pub struct Responses {
    endpoint: Arc<Endpoint>,
    messages: Messages,
}

impl Responses {
    pub fn new(connection: Connection) -> Result<Self, ConfigError> {
        let dialect = Dialect {
            kind: ProviderKind::Responses,
            path: "/v1/responses",
            headers: HeaderMap::new(),
            key_header: bearer,
            decoder: || Box::new(ResponsesDecoder::new()),
        };
        let endpoint = Arc::new(Endpoint::new(connection, dialect)?);
        Ok(Self { endpoint, messages: Messages::new(message::serialise, RULES) })
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
        let body = request::body(request, &texts)?;
        Ok(OutgoingRequest { sent: SentMessages::of(0, &texts), ..body.into() })
    }

    pub async fn send(&self, body: Bytes) -> Result<HttpReply, ProviderError> {
        self.endpoint.attempt(Ok(body)).await
    }
}

impl ModelProvider for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        Arc::clone(&self.endpoint).stream(self.outgoing(&request))
    }
}
