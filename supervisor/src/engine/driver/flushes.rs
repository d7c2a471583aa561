//! What an agent run may do when the log is on the disk, and not before.

use std::collections::VecDeque;

use ipc::id::{ApprovalId, CallId};
use tokio::sync::oneshot;

use crate::journal::session::{Flushed, LogError};

/// Work that waits until the log is on the disk, in the order of its events.
#[derive(Default)]
pub(super) struct Flushes {
    waiting: VecDeque<(Flushed, After)>,
    /// Whoever waits anew, since the disk was full.
    unflushed: Vec<After>,
}

/// What is done then.
pub(super) enum After {
    /// Somebody is asked.
    Ask(ApprovalId),
    /// An approved call is served that is no worker's.
    Serve(CallId),
    /// An approved sub-agent starts.
    Spawn(CallId),
    /// An approved effect goes on.
    GoOn(oneshot::Sender<()>),
}

impl Flushes {
    /// Waits for the disk before something is done.
    pub(super) fn push(&mut self, flushed: Flushed, after: After) {
        self.waiting.push_back((flushed, after));
    }

    /// Keeps what the disk was too full for.
    pub(super) fn put_back(&mut self, after: After) {
        self.unflushed.push(after);
    }

    /// Takes those for whom the disk was full, in their order: they wait anew.
    pub(super) fn take_back(&mut self) -> Vec<After> {
        std::mem::take(&mut self.unflushed)
    }

    /// The next thing to do, or why it cannot be done; pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> (Result<(), LogError>, After) {
        let Some((flushed, _)) = self.waiting.front_mut() else { return std::future::pending().await };
        let flushed = flushed.await.unwrap_or(Err(LogError::FlusherGone));
        match self.waiting.pop_front() {
            Some((_, after)) => (flushed, after),
            None => std::future::pending().await,
        }
    }
}
