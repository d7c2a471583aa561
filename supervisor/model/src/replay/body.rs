use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use crate::recording::{Reply, ReplyEnd};

pub(super) struct ReplyBody {
    chunks: VecDeque<Bytes>,
    pace: Duration,
    waits: VecDeque<Duration>,
    wait: Option<Pin<Box<Sleep>>>,
    end: ReplyEnd,
    /// True if the chunks before a cut have been flushed.
    flushed: bool,
}

impl ReplyBody {
    pub(super) fn new(reply: Reply) -> Self {
        let Reply { chunks, pace, waits, end, .. } = reply;
        Self { chunks, pace, waits, wait: None, end, flushed: false }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.chunks.is_empty() {
            return match self.end {
                ReplyEnd::Whole => Poll::Ready(None),
                ReplyEnd::Cut if !self.flushed => {
                    // hyper flushes when the body is pending.
                    self.flushed = true;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                ReplyEnd::Cut | ReplyEnd::HungUp => {
                    Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
                }
                // The connection's own task wakes when the client leaves.
                ReplyEnd::Silence => Poll::Pending,
            };
        }
        if self.wait.is_none() {
            let wait = self.waits.pop_front().unwrap_or(self.pace);
            self.wait = (!wait.is_zero()).then(|| Box::pin(sleep(wait)));
        }
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        Poll::Ready(self.chunks.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }
}
