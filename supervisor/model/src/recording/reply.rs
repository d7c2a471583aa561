//! A response of a replay server: its chunks, the delays before them, and its end.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub chunks: VecDeque<Bytes>,
    /// Delay before each chunk for which [`Self::waits`] has no delay.
    pub pace: Duration,
    /// Delays before the first chunks, one for each chunk, in place of [`Self::pace`].
    pub waits: VecDeque<Duration>,
    pub end: ReplyEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyEnd {
    Whole,
    Cut,
    /// After the chunks, nothing is sent until the client leaves.
    Silence,
    /// The connection is closed before the first byte of the response.
    HungUp,
}

impl Reply {
    pub fn sse(text: impl Into<Bytes>) -> Self {
        Self::new(200, text).header("content-type", "text/event-stream; charset=utf-8")
    }

    /// Returns an error response in the shape of the Messages API.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::new(status, body.to_string()).header("content-type", "application/json")
    }

    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let chunks = VecDeque::from([body.into()]);
        let (headers, waits) = (Vec::new(), VecDeque::new());
        Self { status, headers, chunks, pace: Duration::ZERO, waits, end: ReplyEnd::Whole }
    }

    pub fn hang_up() -> Self {
        Self { end: ReplyEnd::HungUp, ..Self::new(200, Bytes::new()) }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn chunked(mut self, size: usize) -> Self {
        let mut whole: Bytes = self.chunks.iter().flatten().copied().collect();
        self.chunks.clear();
        while !whole.is_empty() {
            self.chunks.push_back(whole.split_to(size.clamp(1, whole.len())));
        }
        self
    }

    #[must_use]
    pub fn pieces(mut self, pieces: impl IntoIterator<Item = (Duration, Bytes)>) -> Self {
        (self.waits, self.chunks) = pieces.into_iter().unzip();
        self
    }

    #[must_use]
    pub const fn paced(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        let whole: Bytes = self.chunks.iter().flatten().copied().collect();
        self.chunks = VecDeque::from([whole.slice(..bytes.min(whole.len()))]);
        self.end = ReplyEnd::Cut;
        self
    }

    /// Closes the connection after the chunks. The body then lacks its end.
    #[must_use]
    pub const fn then_cut(mut self) -> Self {
        self.end = ReplyEnd::Cut;
        self
    }

    /// Sends nothing after the chunks. The body then lacks its end.
    #[must_use]
    pub const fn then_silence(mut self) -> Self {
        self.end = ReplyEnd::Silence;
        self
    }
}
