//! A response as it is played: its pieces, their times and its end.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub chunks: VecDeque<Bytes>,
    /// The wait before each chunk.
    pub pace: Duration,
    /// The waits before the first chunks, where they differ.
    pub waits: VecDeque<Duration>,
    pub end: ReplyEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyEnd {
    Whole,
    Cut,
    /// Silence until the client leaves.
    Silence,
    /// The connection breaks off before the first byte.
    HungUp,
}

impl Reply {
    pub fn sse(text: impl Into<Bytes>) -> Self {
        Self::new(200, text).header("content-type", "text/event-stream; charset=utf-8")
    }

    /// An error in the API's shape.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::new(status, body.to_string()).header("content-type", "application/json")
    }

    /// A status and a body.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let chunks = VecDeque::from([body.into()]);
        let (headers, waits) = (Vec::new(), VecDeque::new());
        Self { status, headers, chunks, pace: Duration::ZERO, waits, end: ReplyEnd::Whole }
    }

    /// No reply: the connection breaks off.
    pub fn hang_up() -> Self {
        Self { end: ReplyEnd::HungUp, ..Self::new(200, Bytes::new()) }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// In chunks of `size` bytes.
    #[must_use]
    pub fn chunked(mut self, size: usize) -> Self {
        let mut whole: Bytes = self.chunks.iter().flatten().copied().collect();
        self.chunks.clear();
        while !whole.is_empty() {
            self.chunks.push_back(whole.split_to(size.clamp(1, whole.len())));
        }
        self
    }

    /// With a body in these pieces, and a wait before each.
    #[must_use]
    pub fn pieces(mut self, pieces: impl IntoIterator<Item = (Duration, Bytes)>) -> Self {
        (self.waits, self.chunks) = pieces.into_iter().unzip();
        self
    }

    /// With a wait before each chunk.
    #[must_use]
    pub const fn paced(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Breaking off after `bytes` bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        let whole: Bytes = self.chunks.iter().flatten().copied().collect();
        self.chunks = VecDeque::from([whole.slice(..bytes.min(whole.len()))]);
        self.end = ReplyEnd::Cut;
        self
    }

    /// Breaking off at the end of the body.
    #[must_use]
    pub const fn then_cut(mut self) -> Self {
        self.end = ReplyEnd::Cut;
        self
    }

    /// Falling silent at the end instead of ending.
    #[must_use]
    pub const fn then_silence(mut self) -> Self {
        self.end = ReplyEnd::Silence;
        self
    }
}
