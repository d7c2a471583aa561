//! Time limit of a worker for its open calls. A worker that exceeds it counts as hung or compromised and is ended.
//!
//! Calls may wait in the worker for earlier calls. So the limit is the longest of the open calls' own limits, counted
//! from the last end of a call: within it, one of the open calls has to end.

use std::collections::HashMap;
use std::time::Duration;

use ipc::id::CallId;
use ipc::message::Work;
use ipc::rights::Limits;
use ipc::tool::ToolCall;
use tokio::time::{Instant, sleep_until};

/// Time limit for a call of a file tool. A command gets this in addition to its own limit, which the worker enforces.
const PATIENCE: Duration = Duration::from_mins(5);

/// Open calls of a worker, and their time limits.
#[derive(Debug)]
pub(super) struct Patience {
    open: HashMap<CallId, Duration>,
    since: Instant,
    given_up: bool,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { open: HashMap::new(), since: Instant::now(), given_up: false }
    }

    pub(super) fn sent(&mut self, call: CallId, work: &Work, limits: &Limits) {
        if self.open.is_empty() {
            self.since = Instant::now();
        }
        self.open.insert(call, time_of(work, limits));
    }

    pub(super) fn ended(&mut self, call: CallId) {
        if self.open.remove(&call).is_some() {
            self.since = Instant::now();
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// True if the worker is being ended because it exceeded the limit.
    pub(super) const fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Waits until the limit is exceeded; pends while no call is open. Cancel safe.
    pub(super) async fn is_over(&self) {
        match self.open.values().max() {
            Some(longest) if !self.given_up => sleep_until(self.since + *longest).await,
            Some(_) | None => std::future::pending().await,
        }
    }
}

fn time_of(work: &Work, limits: &Limits) -> Duration {
    let of_command = match work {
        Work::Run(ToolCall::ShellExec(command)) => {
            command.timeout_ms.unwrap_or(limits.timeout_ms).min(limits.timeout_ms)
        }
        Work::Run(_) | Work::Prepare(_) | Work::Snapshot { .. } | Work::Fetch { .. } => 0,
    };
    PATIENCE + Duration::from_millis(of_command)
}

#[cfg(test)]
mod tests {
    use ipc::tool::{Access, ListDirectory, ShellExec};
    use tokio::time::{sleep, timeout};

    use super::*;

    const LIMITS: Limits = Limits { timeout_ms: 600_000, output_bytes: 1 };

    fn list() -> Work {
        Work::Run(ToolCall::ListDirectory(ListDirectory { path: ".".into(), depth: None }))
    }

    fn command(timeout_ms: u64) -> Work {
        let (command, access, network, cwd) = ("x".to_owned(), Access::Standing, None, None);
        Work::Run(ToolCall::ShellExec(ShellExec {
            command,
            access,
            network,
            cwd,
            timeout_ms: Some(timeout_ms),
        }))
    }

    async fn left(patience: &Patience) -> Option<u64> {
        let began = Instant::now();
        timeout(Duration::from_hours(1), patience.is_over()).await.ok()?;
        Some(began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_is_that_of_the_longest_call_since_the_last_one_ended() {
        let mut patience = Patience::new();
        assert_eq!(left(&patience).await, None, "nothing is waited for");
        patience.sent(CallId(1), &list(), &LIMITS);
        patience.sent(CallId(2), &command(60_000), &LIMITS);
        patience.sent(CallId(3), &command(9_000_000), &LIMITS);
        sleep(Duration::from_secs(100)).await;
        patience.ended(CallId(3));
        patience.ended(CallId(3));
        assert_eq!(left(&patience).await, Some(360));
        // A further call does not extend the limit.
        patience.sent(CallId(4), &list(), &LIMITS);
        assert_eq!(left(&patience).await, Some(0));
        for call in [1, 2, 4] {
            patience.ended(CallId(call));
        }
        assert_eq!(left(&patience).await, None);
        patience.sent(CallId(5), &list(), &LIMITS);
        assert_eq!(left(&patience).await, Some(300));
    }
}
