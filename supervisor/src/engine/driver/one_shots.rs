//! Approved effects that are being carried out, each in a task of its own. The main loop logs the tasks' updates.

use std::collections::HashMap;
use std::sync::Arc;

use boundary::monitor::HostQuestion;
use boundary::policy::levels::is_empty;
use boundary::tripwire::{Approved, digest};
use ipc::effect::{Effect, FileEffect};
use ipc::id::{CallId, Generation};
use ipc::message::CallOutcome;
use protocol::event::EventKind;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::boundary::Boundary;
use super::millis;
use super::one_shot::{Journal, OneShot, OneShotError, Unlogged};
use super::rewinder::RewindJournal;

/// Maximum number of updates that wait for the main loop. A command that prints more is blocked until there is room.
const INBOX: usize = 8;

pub(super) struct OneShots {
    running: HashMap<CallId, Shot>,
    tasks: JoinSet<()>,
    told: mpsc::Sender<OneShotUpdate>,
    inbox: mpsc::Receiver<OneShotUpdate>,
}

struct Shot {
    began: Instant,
    /// Files of a patch with the approved contents; empty for a command.
    files: Vec<Approved>,
    /// Sender that cancels the effect; `None` after the cancellation.
    cancel: Option<oneshot::Sender<()>>,
}

pub(super) enum OneShotUpdate {
    /// An event to log. The task continues once `logged` is sent.
    Log {
        kind: EventKind,
        logged: oneshot::Sender<()>,
    },
    Output {
        call: CallId,
        bytes: Vec<u8>,
    },
    /// A command connects to a host that its grant does not have.
    HostAsked {
        call: CallId,
        generation: Generation,
        question: HostQuestion,
    },
    /// Text for the model, in addition to the outcome.
    Remark {
        call: CallId,
        text: String,
    },
    /// Request for the generation of a one-shot worker, which is unique within the agent.
    Number(oneshot::Sender<Generation>),
    /// The effect is over, and its worker is gone.
    Finished {
        call: CallId,
        outcome: Result<CallOutcome, String>,
        /// True if the worker may have added contents to its caches that other workers can use.
        brought: bool,
    },
}

impl Default for OneShots {
    fn default() -> Self {
        let (told, inbox) = mpsc::channel(INBOX);
        Self { running: HashMap::new(), tasks: JoinSet::new(), told, inbox }
    }
}

impl OneShots {
    /// Returns the journal by which a rewind logs events of this agent.
    pub(super) fn rewind_journal(&self) -> impl RewindJournal + use<> {
        Teller { call: None, told: self.told.clone() }
    }

    pub(super) fn start(&mut self, call: CallId, shot: OneShot, boundary: Arc<dyn Boundary>) {
        let caches = shot.caches().cloned();
        let files = files(&shot.effect);
        let (cancel, cancelled) = oneshot::channel();
        self.running.insert(call, Shot { began: Instant::now(), files, cancel: Some(cancel) });
        let mut teller = Teller { call: Some(call), told: self.told.clone() };
        self.tasks.spawn(async move {
            let done = shot.carry_out(&*boundary, &mut teller, cancelled).await;
            let outcome = done.map_err(|error: OneShotError| error.to_string());
            let brought = caches.is_some_and(|caches| !is_empty(caches.as_path()));
            let _ = teller.told.send(OneShotUpdate::Finished { call, outcome, brought }).await;
        });
    }

    /// Forgets a finished effect. Returns its duration in milliseconds and its files; 0 and `None` for an unknown call.
    pub(super) fn finish(&mut self, call: CallId) -> (u64, Option<Vec<Approved>>) {
        let shot = self.running.remove(&call);
        let duration_ms = shot.as_ref().map_or(0, |shot| millis(shot.began.elapsed()));
        (duration_ms, shot.map(|shot| shot.files))
    }

    pub(super) fn cancel(&mut self, call: CallId) -> bool {
        let Some(shot) = self.running.get_mut(&call) else { return false };
        // A failed send means that the effect is over.
        let _ = shot.cancel.take().map(|cancel| cancel.send(()));
        true
    }

    pub(super) fn cancel_all(&mut self) {
        let calls: Vec<_> = self.running.keys().copied().collect();
        for call in calls {
            self.cancel(call);
        }
    }

    pub(super) fn any_ends(&self) -> bool {
        self.running.values().any(|shot| shot.cancel.is_none())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Waits for the next update; pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> OneShotUpdate {
        loop {
            tokio::select! {
                // Updates that a task sent before its end are returned first.
                biased;
                Some(told) = self.inbox.recv() => return told,
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "an approved change lost its task");
                        if let Some(call) = self.unattended() {
                            let outcome = Err(format!("the task that made the change failed: {error}"));
                            return OneShotUpdate::Finished { call, outcome, brought: true };
                        }
                    }
                }
                else => return std::future::pending().await,
            }
        }
    }

    /// Returns a call whose task ended without reporting the effect's end; `None` while other tasks run.
    fn unattended(&self) -> Option<CallId> {
        self.running.keys().copied().next().filter(|_| self.tasks.is_empty())
    }
}

/// Journal that sends updates to the main loop, which alone writes the log.
struct Teller {
    /// The approved call; `None` for a rewind, which prints nothing and sends no text to the model.
    call: Option<CallId>,
    told: mpsc::Sender<OneShotUpdate>,
}

impl Journal for Teller {
    async fn log(&mut self, kind: EventKind) -> Result<(), Unlogged> {
        let (logged, done) = oneshot::channel();
        self.told.send(OneShotUpdate::Log { kind, logged }).await.map_err(|_| Unlogged)?;
        done.await.map_err(|_| Unlogged)
    }

    async fn output(&mut self, bytes: Vec<u8>) {
        if let Some(call) = self.call {
            // An error means that the main loop has ended.
            let _ = self.told.send(OneShotUpdate::Output { call, bytes }).await;
        }
    }

    async fn ask_host(&mut self, generation: Generation, question: HostQuestion) {
        if let Some(call) = self.call {
            let _ = self.told.send(OneShotUpdate::HostAsked { call, generation, question }).await;
        }
    }

    async fn remark(&mut self, text: String) {
        if let Some(call) = self.call {
            let _ = self.told.send(OneShotUpdate::Remark { call, text }).await;
        }
    }
}

impl RewindJournal for Teller {
    async fn number(&mut self) -> Result<Generation, Unlogged> {
        let (number, reserved) = oneshot::channel();
        self.told.send(OneShotUpdate::Number(number)).await.map_err(|_| Unlogged)?;
        reserved.await.map_err(|_| Unlogged)
    }
}

fn files(effect: &Effect) -> Vec<Approved> {
    let Effect::Patch(patch) = effect else { return Vec::new() };
    let approved = |file: &FileEffect| Approved {
        path: file.path.as_path().to_owned(),
        digest: file.new.as_ref().map(|new| digest(&new.bytes)),
    };
    patch.files.iter().map(approved).collect()
}
