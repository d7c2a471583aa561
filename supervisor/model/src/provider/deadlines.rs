use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tokio::task::yield_now;
use tokio::time::Instant;

use super::ProviderError;
use super::http::Timeouts;

/// Maximum time for reading the body of an error.
const ERROR_BODY: Duration = Duration::from_secs(10);

/// Limit on the time in which a reply sends bytes, but makes no progress.
pub struct ReplyProgress {
    pub limit: Duration,
    /// The error of a reply that exceeds the limit.
    pub lapsed: ProviderError,
}

#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    host: String,
    first: Instant,
    timeouts: Timeouts,
}

pub(crate) type TimedBody = Pin<Box<dyn Stream<Item = Result<Bytes, ProviderError>> + Send>>;

impl Deadlines {
    pub(crate) fn begin(host: String, timeouts: Timeouts) -> Self {
        Self { host, first: Instant::now() + timeouts.first_byte, timeouts }
    }

    pub(crate) async fn head<T>(&self, reply: impl Future<Output = T>) -> Result<T, ProviderError> {
        tokio::time::timeout_at(self.first, reply).await.map_err(|_| self.silent())
    }

    /// Returns the bytes, or an error if they are late. The first byte has to arrive by the deadline of the attempt,
    /// each later chunk within the idle limit.
    ///
    /// Decompressed bytes are always ready, so other tasks run before each chunk.
    pub(crate) fn body(
        self,
        bytes: impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static,
    ) -> TimedBody {
        let timed = stream::unfold(Some((Box::pin(bytes), self, true)), |state| async {
            let (mut bytes, deadlines, is_first) = state?;
            yield_now().await;
            let next = if is_first {
                deadlines.head(bytes.next()).await
            } else {
                deadlines.idle(bytes.next()).await
            };
            match next {
                Ok(None) => None,
                Ok(Some(Ok(chunk))) => Some((Ok(chunk), Some((bytes, deadlines, false)))),
                Ok(Some(Err(error))) | Err(error) => Some((Err(error), None)),
            }
        });
        Box::pin(timed)
    }

    pub(crate) fn progress(&self) -> ReplyProgress {
        let limit = self.timeouts.progress;
        let message = format!("{} sent no part of its reply for {limit:?}", self.host);
        let hint = "check the server, or raise timeouts.progress_s in config.toml";
        ReplyProgress { limit, lapsed: timeout(message).hint(hint) }
    }

    /// Returns the deadline for the body of an error. It is short, because the status is already known.
    pub(crate) fn of_error(&self) -> Instant {
        Instant::now() + self.timeouts.idle.min(ERROR_BODY)
    }

    async fn idle<T>(&self, next: impl Future<Output = T>) -> Result<T, ProviderError> {
        let idle = self.timeouts.idle;
        let lapsed = |_| {
            timeout(format!("{} sent nothing for {idle:?}", self.host))
                .hint("check the network, or raise timeouts.idle_s in config.toml")
        };
        tokio::time::timeout(idle, next).await.map_err(lapsed)
    }

    fn silent(&self) -> ProviderError {
        let Self { host, timeouts, .. } = self;
        timeout(format!("{host} did not begin to answer within {:?}", timeouts.first_byte))
            .hint("check the server, or raise timeouts.first_byte_s in config.toml")
    }
}

fn timeout(message: String) -> ProviderError {
    ProviderError::new("timeout", message).retryable()
}
