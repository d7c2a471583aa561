//! The core's timers.

use std::time::Duration;

use tokio::time::Instant;

use agent::core::TimerId;

/// Running timers, at most a handful.
#[derive(Debug, Default)]
pub(super) struct Timers(Vec<(Instant, TimerId)>);

impl Timers {
    pub(super) fn start(&mut self, id: TimerId, after: Duration) {
        self.0.push((Instant::now() + after, id));
    }

    /// Waits until a timer fires; pends while none runs. Cancel safe.
    pub(super) async fn next(&mut self) -> TimerId {
        let Some((index, (at, id))) = self.0.iter().copied().enumerate().min_by_key(|(_, (at, _))| *at)
        else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(at).await;
        self.0.swap_remove(index);
        id
    }
}
