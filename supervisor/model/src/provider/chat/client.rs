use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::header::HeaderMap;

use super::back::{Lessons, ReasoningBack, has_reasoning};
use super::config::{ChatServer, Config};
use super::{Decoder, message, request};
use crate::provider::blame::SentMessages;
use crate::provider::connection::{self, ConfigError};
use crate::provider::endpoint::{Dialect, Endpoint, OutgoingRequest, bearer};
use crate::provider::fit::FitRules;
use crate::provider::messages::Messages;
use crate::provider::reply::HttpReply;
use crate::provider::{
    EventStream, Message, ModelProvider, ModelRequest, ProviderError, ProviderKind, UserBlock,
};

pub struct OpenAiChat {
    endpoint: Arc<Endpoint>,
    /// Messages in three forms: without reasoning, with reasoning where a message has tool calls, and with all
    /// reasoning.
    messages: Box<[Messages; 3]>,
    server: ChatServer,
    lessons: Lessons,
}

impl OpenAiChat {
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let known = ChatServer::at(&connection::base_url(&config.connection.base_url)?);
        let reply_limit = config.reply_limit.unwrap_or(known.reply_limit);
        let server = ChatServer { reply_limit, ..known };
        let dialect = Dialect {
            kind: ProviderKind::OpenAi,
            path: server.path,
            headers: HeaderMap::new(),
            key_header: bearer,
            decoder: || Box::new(Decoder::new()),
        };
        let endpoint = Arc::new(Endpoint::new(config.connection, dialect)?);
        let rules = FitRules { kind: ProviderKind::OpenAi, ids: server.ids };
        let messages = [message::without_reasoning, message::serialise, message::with_all_reasoning]
            .map(|serialise| Messages::new(serialise, rules));
        Ok(Self { endpoint, messages: Box::new(messages), server, lessons: Lessons::default() })
    }

    pub fn notices(&self) -> &[String] {
        self.endpoint.notices()
    }

    pub fn body(&self, request: &ModelRequest) -> Result<Bytes, ProviderError> {
        Ok(self.outgoing(request)?.body)
    }

    fn outgoing(&self, request: &ModelRequest) -> Result<OutgoingRequest, ProviderError> {
        let texts = self.messages(request).texts(request).map_err(|error| request::unserialisable(&error))?;
        let body = request::body(request, &texts, self.server)?;
        Ok(OutgoingRequest {
            sent: SentMessages::of(usize::from(!request.system.is_empty()), &texts),
            ..body.into()
        })
    }

    /// Returns the messages in the form that the server accepts for the model of the request.
    fn messages(&self, request: &ModelRequest) -> &Messages {
        let [never, with_calls, everywhere] = &*self.messages;
        let is_thinking = || self.server.wants_reasoning && has_reasoning(&request.messages);
        match self.lessons.of(&request.model) {
            Some(ReasoningBack::Never) => never,
            Some(ReasoningBack::Everywhere) => everywhere,
            None if is_thinking() => everywhere,
            Some(ReasoningBack::WithCalls) | None => with_calls,
        }
    }

    pub async fn send(&self, body: Bytes) -> Result<HttpReply, ProviderError> {
        self.endpoint.attempt(Ok(body)).await
    }
}

impl ModelProvider for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let decoder = Decoder::after(answered_calls(&request.messages));
        let with = |outgoing| OutgoingRequest { decoder: Some(Box::new(decoder)), ..outgoing };
        let events = Arc::clone(&self.endpoint).stream(self.outgoing(&request).map(with));
        let lessons = self.lessons.clone();
        Box::pin(events.map(move |event| event.map_err(|error| lessons.learn(&request.model, error))))
    }
}

/// Returns the number of tool calls in the conversation: the number of their results, because each call has one.
fn answered_calls(messages: &[Arc<Message>]) -> usize {
    let results = |message: &Arc<Message>| match &**message {
        Message::User(blocks) => {
            blocks.iter().filter(|block| matches!(block, UserBlock::ToolResult { .. })).count()
        }
        Message::Assistant(_) => 0,
    };
    messages.iter().map(results).sum()
}
