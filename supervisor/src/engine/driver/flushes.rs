//! Work of an agent run that waits until the log is synced to the disk (fdatasync(2)).

use std::collections::VecDeque;

use ipc::id::{ApprovalId, CallId};
use tokio::sync::oneshot;

use crate::journal::session::{Flushed, LogError};

/// Work that waits for a sync of the log, in the order of the logged events.
#[derive(Default)]
pub(super) struct Flushes {
    waiting: VecDeque<(Flushed, After)>,
    /// Work whose sync failed because the disk was full. It waits for another sync.
    unflushed: Vec<After>,
}

pub(super) enum After {
    Ask(ApprovalId),
    /// Begins an approved call that no worker serves.
    Serve(CallId),
    Spawn(CallId),
    /// Lets the task of an approved effect continue.
    GoOn(oneshot::Sender<()>),
}

impl Flushes {
    pub(super) fn push(&mut self, flushed: Flushed, after: After) {
        self.waiting.push_back((flushed, after));
    }

    /// Keeps work whose sync failed because the disk was full.
    pub(super) fn put_back(&mut self, after: After) {
        self.unflushed.push(after);
    }

    /// Returns and removes, in order, the work whose sync failed.
    pub(super) fn take_back(&mut self) -> Vec<After> {
        std::mem::take(&mut self.unflushed)
    }

    /// Returns the next work whose sync is over, with the sync's result. Pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> (Result<(), LogError>, After) {
        let Some((flushed, _)) = self.waiting.front_mut() else { return std::future::pending().await };
        let flushed = flushed.await.unwrap_or(Err(LogError::FlusherGone));
        match self.waiting.pop_front() {
            Some((_, after)) => (flushed, after),
            None => std::future::pending().await,
        }
    }
}
