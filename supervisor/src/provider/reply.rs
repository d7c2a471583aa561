//! A reply: bytes in, stream events out, for a real connection and for a recorded one alike.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};

use super::decode::{Decode, Envelope};
use super::key::ApiKey;
use super::sse::{self, SseError};
use super::{ProviderError, StreamEvent};

/// The most bytes of a reply that comes as one JSON text.
const MAX_WHOLE: usize = 64 * 1024 * 1024;
/// How long the end of a complete reply's body may take before its connection is given up.
const DRAIN: Duration = Duration::from_millis(100);

type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, ProviderError>> + Send>>;
type Data = Pin<Box<dyn Stream<Item = Result<String, SseError<ProviderError>>> + Send>>;

/// The body of a reply while it comes in.
pub(crate) struct Reply {
    body: Body,
    decoder: Box<dyn Decode>,
    ready: VecDeque<StreamEvent>,
    failure: Option<ProviderError>,
    context: Context,
}

/// What an error of a reply is completed with, and kept free of.
#[derive(Default)]
pub(crate) struct Context {
    /// The provider's id of the request.
    pub(crate) request_id: Option<String>,
    /// The key that was sent.
    pub(crate) key: Arc<ApiKey>,
}

enum Body {
    /// Nothing was read.
    Unread(BoxStream<Bytes>),
    Events(Data),
    /// The reply is complete; only the end of the body is missing.
    Draining(Data),
    Ended,
}

impl Reply {
    /// A reply whose body is `bytes`.
    pub(crate) fn new(
        bytes: impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static,
        decoder: Box<dyn Decode>,
        context: Context,
    ) -> Self {
        Self { body: Body::Unread(Box::pin(bytes)), decoder, ready: VecDeque::new(), failure: None, context }
    }

    /// What is known of the message.
    pub(crate) fn envelope(&self) -> &Envelope {
        self.decoder.envelope()
    }

    /// The next event; an error is the last item.
    pub(crate) async fn next(&mut self) -> Option<Result<StreamEvent, ProviderError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(self.completed(failure)));
            }
            match std::mem::replace(&mut self.body, Body::Ended) {
                Body::Unread(bytes) => self.open(bytes).await,
                Body::Events(data) => self.read(data).await,
                Body::Draining(data) => drain(data).await,
                Body::Ended => return None,
            }
        }
    }

    /// S10: a body that begins as JSON is one, whatever its headers say; so is a page of HTML.
    async fn open(&mut self, mut bytes: BoxStream<Bytes>) {
        let mut head = BytesMut::new();
        let first = loop {
            if let Some(first) = first_visible(&head) {
                break Some(first);
            }
            match bytes.next().await {
                Some(Ok(chunk)) => head.extend_from_slice(&chunk),
                Some(Err(error)) => return self.failure = Some(error),
                None => break None,
            }
        };
        let head = stream::iter([Ok(head.freeze())]);
        match first {
            Some(b'{') => self.read_whole(head.chain(bytes).boxed()).await,
            Some(b'<') => {
                let message =
                    "the server sent a page of HTML instead of a reply: check the base URL and any proxy";
                self.failure = Some(ProviderError::new("invalid_response", message));
            }
            _ => self.body = Body::Events(Box::pin(sse::events(head.chain(bytes)))),
        }
    }

    async fn read_whole(&mut self, mut bytes: BoxStream<Bytes>) {
        let mut whole = Vec::new();
        while let Some(chunk) = bytes.next().await {
            match chunk {
                Ok(chunk) => whole.extend_from_slice(&chunk),
                Err(error) => return self.failure = Some(error),
            }
            if whole.len() > MAX_WHOLE {
                return self.failure = Some(malformed(&SseError::TooLarge(MAX_WHOLE)));
            }
        }
        self.failure = match std::str::from_utf8(&whole) {
            Ok(json) => self.decoder.push_whole(json.trim_start_matches('\u{feff}'), &mut self.ready).err(),
            Err(_) => Some(malformed(&SseError::InvalidUtf8)),
        };
    }

    async fn read(&mut self, mut data: Data) {
        let result = match data.next().await {
            Some(Ok(data)) => self.decoder.push(&data, &mut self.ready),
            // S7: what was to come after the stop reason is not missed.
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

    fn completed(&self, mut failure: ProviderError) -> ProviderError {
        if failure.request_id.is_none()
            && let Some(id) = &self.context.request_id
        {
            failure.message = format!("{} [request-id {id}]", failure.message);
            failure.request_id = Some(id.clone());
        }
        self.context.key.redact(failure)
    }
}

/// Takes the end of the body, so that the connection can be used again. Nobody waits for it who stops at the last event.
async fn drain(mut data: Data) {
    let rest = async { while let Some(Ok(_)) = data.next().await {} };
    if tokio::time::timeout(DRAIN, rest).await.is_err() {
        tracing::debug!("the body of a complete reply has no end");
    }
}

/// The first byte that is neither a blank nor part of a byte-order mark.
fn first_visible(head: &[u8]) -> Option<u8> {
    const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
    head.iter().copied().find(|byte| !byte.is_ascii_whitespace() && !BOM.contains(byte))
}

fn malformed(error: &SseError<ProviderError>) -> ProviderError {
    match error {
        SseError::Transport(error) => error.clone(),
        SseError::CutShort => {
            ProviderError::new("truncated_stream", format!("the reply ended with {error}")).retryable()
        }
        SseError::InvalidUtf8 => invalid(error).retryable(),
        SseError::TooLarge(_) => invalid(error),
    }
}

fn invalid(error: &SseError<ProviderError>) -> ProviderError {
    ProviderError::new("invalid_response", format!("the provider sent {error}"))
}
