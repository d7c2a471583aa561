use std::collections::VecDeque;

use bytes::Bytes;

use crate::recording::Reply;

#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) replies: VecDeque<Reply>,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reply whose body is this SSE text, such as that of [`sse::message`](super::sse::message).
    #[must_use]
    pub fn reply(self, sse: impl Into<Bytes>) -> Self {
        self.push(Reply::sse(sse))
    }

    #[must_use]
    pub fn reply_error(self, status: u16, kind: &str, message: &str) -> Self {
        self.push(Reply::error(status, kind, message))
    }

    #[must_use]
    pub fn push(mut self, reply: Reply) -> Self {
        self.replies.push_back(reply);
        self
    }
}
