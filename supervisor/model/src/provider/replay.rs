use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::stream;

use super::reply::{Context, HttpReply};
use super::{EventStream, ModelProvider, ModelRequest, ProviderError, ProviderKind};

#[derive(Default)]
pub struct ReplayProvider {
    /// Size in bytes of the chunks in which a reply is sent; `None` to send it in one chunk.
    chunk: Option<NonZeroUsize>,
    kind: ProviderKind,
    state: Mutex<ReplayedState>,
}

#[derive(Default)]
struct ReplayedState {
    replies: VecDeque<Result<Bytes, ProviderError>>,
    requests: Vec<ModelRequest>,
}

impl ReplayProvider {
    pub fn new(replies: impl IntoIterator<Item = impl Into<Bytes>>) -> Self {
        Self::with_errors(replies.into_iter().map(|reply| Ok(reply.into())))
    }

    pub fn with_errors(replies: impl IntoIterator<Item = Result<Bytes, ProviderError>>) -> Self {
        let state = ReplayedState { replies: replies.into_iter().collect(), requests: Vec::new() };
        Self { chunk: None, kind: ProviderKind::default(), state: Mutex::new(state) }
    }

    /// Sends replies in chunks of `size` bytes, as a network might.
    #[must_use]
    pub fn in_chunks(self, size: NonZeroUsize) -> Self {
        Self { chunk: Some(size), ..self }
    }

    #[must_use]
    pub fn of(self, kind: ProviderKind) -> Self {
        Self { kind, ..self }
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, ReplayedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelProvider for ReplayProvider {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let mut state = self.state();
        state.requests.push(request);
        let count = state.requests.len();
        let reply = state.replies.pop_front().unwrap_or_else(|| {
            Err(ProviderError::new(
                "invalid_response",
                format!("the recording has no reply to request {count}"),
            ))
        });
        let decoder = self.kind.decoder();
        // Unlike an iterator, this stream reports its end only once, like a connection.
        let pieces = split(reply, self.chunk);
        let bytes = stream::unfold(pieces, async |mut pieces| Some((pieces.next()?, pieces)));
        let reply = HttpReply::new(bytes, decoder, Context::of(self.kind));
        Box::pin(stream::unfold(reply, async |mut reply| Some((reply.next().await?, reply))))
    }
}

fn split(
    body: Result<Bytes, ProviderError>,
    chunk: Option<NonZeroUsize>,
) -> impl Iterator<Item = Result<Bytes, ProviderError>> {
    let mut rest = Some(body);
    std::iter::from_fn(move || match (rest.take()?, chunk) {
        (Ok(mut body), Some(size)) if body.len() > size.get() => {
            let piece = body.split_to(size.get());
            rest = Some(Ok(body));
            Some(Ok(piece))
        }
        (body, _) => Some(body),
    })
}
