use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};

use super::blame::SentMessages;
use super::deadlines::ReplyProgress;
use super::decode::{Decode, Envelope, truncated, violation};
use super::failure::remedy;
use super::key::ProviderApiKey;
use super::opening::{BodyKind, MAX_BLANKS, Opening};
use super::peer::Peer;
use super::sse::{self, MAX_EVENT, SseError};
use super::{ProviderError, ProviderKind, StreamEvent};

/// Maximum bytes of a body, including comments and blank lines. No model's reply is nearly as long.
const MAX_REPLY: usize = 64 * 1024 * 1024;
/// Maximum wait for the end of a body after its reply is complete.
const DRAIN: Duration = Duration::from_millis(100);

type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, ProviderError>> + Send>>;
type Data = Pin<Box<dyn Stream<Item = Result<String, SseError<ProviderError>>> + Send>>;

pub struct HttpReply {
    body: Body,
    decoder: Box<dyn Decode>,
    ready: VecDeque<StreamEvent>,
    failure: Option<ProviderError>,
    context: Context,
    /// True until the first event is decoded. That event shows if the reply is of another API.
    is_new: bool,
    /// Time at which the reply fails unless it makes progress; `None` without a limit.
    stalls_at: Option<Instant>,
}

#[derive(Default)]
pub struct Context {
    pub request_id: Option<String>,
    pub key: Arc<ProviderApiKey>,
    pub progress: Option<ReplyProgress>,
    pub(crate) peer: Arc<Peer>,
    /// The messages of the request, to find the message that an error names.
    pub(crate) sent: SentMessages,
}

impl Context {
    pub fn of(kind: ProviderKind) -> Self {
        Self { peer: Arc::new(Peer { kind: Some(kind), ..Peer::default() }), ..Self::default() }
    }
}

enum Body {
    Unread(BoxStream<Bytes>),
    Events(Data),
    /// The reply is complete, but its body has not ended.
    Draining(Data),
    Ended,
}

impl HttpReply {
    pub fn new(
        bytes: impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static,
        decoder: Box<dyn Decode>,
        context: Context,
    ) -> Self {
        let mut reply = Self {
            // The stream is fused, because it is polled again after its end.
            body: Body::Unread(bounded(bytes).fuse().boxed()),
            decoder,
            ready: VecDeque::new(),
            failure: None,
            context,
            is_new: true,
            stalls_at: None,
        };
        reply.has_got_on();
        reply
    }

    pub fn envelope(&self) -> &Envelope {
        self.decoder.envelope()
    }

    pub async fn next(&mut self) -> Option<Result<StreamEvent, ProviderError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(self.completed(failure)));
            }
            match std::mem::replace(&mut self.body, Body::Ended) {
                Body::Draining(data) => drain(data).await,
                Body::Ended => return None,
                body => self.advance(body).await,
            }
        }
    }

    /// Reads the next part of the body. Fails if the reply makes no progress within its limit.
    async fn advance(&mut self, body: Body) {
        let before = self.decoder.progress();
        let Some(deadline) = self.stalls_at else { return self.step(body).await };
        if timeout_at(deadline, self.step(body)).await.is_err() {
            self.failure = self.context.progress.as_ref().map(|progress| progress.lapsed.clone());
        } else if self.decoder.progress() != before {
            self.has_got_on();
        }
    }

    fn has_got_on(&mut self) {
        self.stalls_at = self.context.progress.as_ref().map(|progress| Instant::now() + progress.limit);
    }

    async fn step(&mut self, body: Body) {
        match body {
            Body::Unread(bytes) => self.open(bytes).await,
            Body::Events(data) => self.read(data).await,
            Body::Draining(_) | Body::Ended => {}
        }
    }

    async fn open(&mut self, mut bytes: BoxStream<Bytes>) {
        let mut opening = Opening::default();
        let kind = loop {
            match bytes.next().await {
                Some(Ok(chunk)) => {
                    if let Some(kind) = opening.push(&chunk) {
                        break kind;
                    }
                }
                Some(Err(error)) => return self.failure = Some(error),
                None => break opening.finish(),
            }
        };
        let body = stream::iter([Ok(opening.into_head())]).chain(bytes);
        self.failure = match kind {
            BodyKind::Json => return self.read_whole(body.boxed()).await,
            BodyKind::Events => return self.body = Body::Events(Box::pin(sse::events(body))),
            BodyKind::Html => Some(self.context.peer.foreign("the server sent a page of HTML")),
            BodyKind::Text(line) => Some(self.context.peer.foreign(&format!("the server sent {line:?}"))),
            BodyKind::Blank => {
                Some(violation(&format!("more than {MAX_BLANKS} spaces or line ends before the reply")))
            }
            BodyKind::Empty => Some(truncated("the reply ended before it began")),
        };
    }

    async fn read_whole(&mut self, mut bytes: BoxStream<Bytes>) {
        let mut whole = Vec::new();
        while let Some(chunk) = bytes.next().await {
            match chunk {
                Ok(chunk) => whole.extend_from_slice(&chunk),
                Err(error) => return self.failure = Some(error),
            }
            if whole.len() > MAX_EVENT {
                let error = SseError::TooLarge { what: "a JSON reply", limit: MAX_EVENT };
                return self.failure = Some(malformed(&error));
            }
        }
        self.failure = match std::str::from_utf8(&whole) {
            Ok(json) => {
                let mismatch = self.context.peer.mismatch_of_whole(json);
                mismatch.or_else(|| self.decoder.push_whole(json, &mut self.ready).err())
            }
            Err(_) => Some(malformed(&SseError::InvalidUtf8)),
        };
    }

    async fn read(&mut self, mut data: Data) {
        let result = match data.next().await {
            Some(Ok(data)) => self.decode(&data),
            // Nothing important follows the stop reason.
            Some(Err(error)) => self.decoder.finish(&mut self.ready).map_err(|_| malformed(&error)),
            None => return self.failure = self.decoder.finish(&mut self.ready).err(),
        };
        if let Err(failure) = result {
            self.failure = Some(failure);
        } else if self.decoder.is_complete() {
            self.body = Body::Draining(data);
        } else {
            self.body = Body::Events(data);
        }
    }

    fn decode(&mut self, data: &str) -> Result<(), ProviderError> {
        if self.is_new
            && let Some(error) = self.context.peer.mismatch(data)
        {
            return Err(error);
        }
        let decoded = self.decoder.push(data, &mut self.ready);
        self.is_new &= self.ready.is_empty();
        decoded
    }

    fn completed(&self, mut failure: ProviderError) -> ProviderError {
        if failure.hint.is_none() {
            failure.hint = remedy(&failure, &self.context.key, &self.context.peer);
        }
        failure = self.context.sent.blamed(failure);
        if failure.request_id.is_none()
            && let Some(id) = &self.context.request_id
        {
            failure.message = format!("{} [request-id {id}]", failure.message);
            failure.request_id = Some(id.as_str().into());
        }
        self.context.key.redact(failure)
    }
}

/// Reads the rest of a body, so that the connection can be reused. A caller that needs only the events does not wait.
async fn drain(mut data: Data) {
    let rest = async { while let Some(Ok(_)) = data.next().await {} };
    if timeout(DRAIN, rest).await.is_err() {
        tracing::debug!("the body of a complete reply has no end");
    }
}

/// Returns the body, which fails if it exceeds [`MAX_REPLY`].
fn bounded(
    bytes: impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static {
    let mut received = 0_usize;
    bytes.map(move |chunk| {
        let chunk = chunk?;
        received = received.saturating_add(chunk.len());
        if received > MAX_REPLY {
            let message = format!("the reply has more than {MAX_REPLY} bytes");
            return Err(ProviderError::new("invalid_response", message));
        }
        Ok(chunk)
    })
}

fn malformed(error: &SseError<ProviderError>) -> ProviderError {
    match error {
        SseError::Transport(error) => error.clone(),
        SseError::CutShort => truncated("the reply ended inside a character"),
        SseError::InvalidUtf8 => invalid(error).retryable(),
        SseError::TooLarge { .. } => invalid(error),
    }
}

fn invalid(error: &SseError<ProviderError>) -> ProviderError {
    ProviderError::new("invalid_response", format!("the provider sent {error}"))
}
