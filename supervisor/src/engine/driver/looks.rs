//! Snapshots of the project in a running session, and the changed files that they show.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, SystemTime};

use ipc::id::{AgentCall, AgentId, EventId};
use ipc::path::WirePath;
use protocol::event::{EventKind, FilesChanged, SessionEvent};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::observer::ObserverError;
use super::rewinder::{Rewinder, may_write};
use super::sources::Writers;
use crate::journal::checkpoints::{At, nanoseconds};

/// Maximum duration of a snapshot for another one to follow the next call. Larger projects get only the one at the end
/// of the turn.
const QUICK: Duration = Duration::from_millis(500);

type Looking = JoinHandle<Result<Vec<String>, ObserverError>>;

/// Snapshots after a message of the user, once a call may write, and at the end of a turn in which one may have
/// written.
pub(super) struct Looks {
    rewinder: Rewinder,
    due: Vec<EventId>,
    /// True if the first agent may write in the project without asking.
    may_write: bool,
    in_turn: bool,
    /// Agents that execute a plan in addition to the first agent.
    executors: BTreeSet<AgentId>,
    stretch: Stretch,
    /// Snapshot before a write, which waits for it.
    looking: Option<Looking>,
    /// Snapshots that nothing waits for, at the end of a turn and between its calls.
    beside: VecDeque<(Looking, Beside)>,
    between: Between,
    writers: Writers,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    EndOfTurn,
    EndOfCall,
}

struct Between {
    /// True if a front end shows changes and snapshots are fast enough.
    wanted: bool,
    /// Start of the snapshot that is being taken.
    began: Option<Instant>,
    /// True if a call ended since `began`.
    again: bool,
}

/// Time in which changes count as the agents' own: a turn, or the execution of a plan alongside.
#[derive(Default)]
struct Stretch {
    /// True if a snapshot was taken in this time.
    looked: bool,
    written: bool,
}

impl Looks {
    /// Creates the snapshots. If `is_watched`, they are taken between the calls of a turn as well.
    pub(super) fn new(rewinder: Rewinder, is_watched: bool) -> Self {
        Self {
            writers: Writers::new(rewinder.project().clone()),
            between: Between { wanted: is_watched, began: None, again: false },
            rewinder,
            due: Vec::new(),
            may_write: false,
            in_turn: false,
            executors: BTreeSet::new(),
            stretch: Stretch { looked: false, written: false },
            looking: None,
            beside: VecDeque::new(),
        }
    }

    pub(super) const fn rewinder(&self) -> &Rewinder {
        &self.rewinder
    }

    /// Handles a logged event. A snapshot begins before the model or the user answers, since both take longer.
    pub(super) fn note(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::ToolCallFinished { call, diffs, .. } => {
                let may_have_written = self.writers.ended(&event.agent, *call, diffs, now_ns());
                self.look_between(may_have_written);
            }
            EventKind::SubAgentSpawned(spawned) if spawned.plan.is_some() => {
                self.executors.insert(spawned.agent.clone());
            }
            EventKind::SubAgentResult(result) => {
                self.writers.rests(&result.agent, now_ns());
                let executed = self.executors.remove(&result.agent);
                if (executed || result.call.is_none()) && !self.in_turn {
                    self.end_turn();
                }
            }
            // The rest is about the first agent.
            _ if !event.agent.is_top_level() => {}
            EventKind::WorkerStarted(started) if started.one_shot.is_none() => {
                self.may_write = may_write(&started.rights);
            }
            EventKind::RightsChanged(changed) => self.may_write = may_write(&changed.rights),
            EventKind::UserMessage { .. } => {
                self.in_turn = true;
                self.due.push(event.id);
                if self.may_write {
                    self.begin();
                }
            }
            EventKind::ApprovalRequested { .. } => self.begin(),
            EventKind::TurnFinished(_) => {
                self.in_turn = false;
                self.writers.rests(&event.agent, now_ns());
                self.end_turn();
            }
            _ => {}
        }
    }

    fn begin(&mut self) {
        if !self.due.is_empty() {
            self.look();
        }
    }

    fn look(&mut self) {
        if self.looking.is_none() {
            let at = At::Messages(std::mem::take(&mut self.due));
            self.stretch.looked = true;
            self.looking = Some(self.spawn(at));
        }
    }

    fn spawn(&self, at: At) -> Looking {
        let (rewinder, written) = (self.rewinder.clone(), self.writers.written());
        tokio::spawn(async move { rewinder.look_for(at, written).await })
    }

    /// Takes a snapshot after a call that may have written, unless snapshots are too slow for that.
    fn look_between(&mut self, may_have_written: bool) {
        if !self.between.wanted || !may_have_written {
            return;
        }
        if self.between.began.is_some() {
            self.between.again = true;
            return;
        }
        self.between.began = Some(Instant::now());
        let look = self.spawn(At::Call);
        self.beside.push_back((look, Beside::EndOfCall));
    }

    fn end_between(&mut self) {
        if let Some(began) = self.between.began.take() {
            self.between.wanted &= began.elapsed() <= QUICK;
            let again = std::mem::take(&mut self.between.again);
            self.look_between(again);
        }
    }

    /// Records that a call begins that may write in these roots, or only in some files if a file tool serves it.
    pub(super) fn call_begins(&mut self, call: AgentCall, roots: Vec<WirePath>, only: Option<Vec<WirePath>>) {
        self.writers.began(call, roots, only, now_ns());
    }

    /// Returns the changes that snapshots showed since the previous call.
    pub(super) fn changes(&mut self) -> Vec<FilesChanged> {
        let untold = self.rewinder.take_untold();
        untold.into_iter().filter_map(|look| self.writers.tell(look.seen, look.ignored)).collect()
    }

    /// Ends the agents' time unless a plan is executed, because changes are still their own then.
    fn end_turn(&mut self) {
        if self.executors.is_empty() {
            self.end_stretch();
        }
    }

    fn end_stretch(&mut self) {
        let rewinder = self.rewinder.clone();
        let Stretch { looked, written } = std::mem::take(&mut self.stretch);
        if written {
            let look = self.spawn(At::End);
            self.beside.push_back((look, Beside::EndOfTurn));
        } else if looked {
            let rest = tokio::spawn(async move { rewinder.rest().await });
            self.beside.push_back((rest, Beside::EndOfTurn));
        }
    }

    /// Takes a snapshot if there was none since the last message. True while it is being taken, when nothing may write.
    /// Without it, changes by a plan after the last turn would be attributed to others.
    pub(super) fn before_a_write(&mut self) -> bool {
        self.stretch.written = true;
        if !self.stretch.looked || !self.due.is_empty() {
            self.look();
        }
        self.looking.is_some()
    }

    /// Waits for a snapshot. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Vec<String>, ObserverError> {
        let beside = self.beside.front_mut();
        let (looked, beside) = tokio::select! {
            looked = over(self.looking.as_mut()) => (looked, None),
            (looked, at) = over_beside(beside) => (looked, Some(at)),
        };
        match beside {
            None => self.looking = None,
            Some(_) => drop(self.beside.pop_front()),
        }
        if beside != Some(Beside::EndOfCall) {
            return looked;
        }
        // The snapshot at the end of the turn reports the error.
        self.between.wanted &= looked.is_ok();
        self.end_between();
        Ok(looked.unwrap_or_default())
    }

    /// Waits for the open snapshots, and returns the changed files. A snapshot before a write that never happened is
    /// dropped.
    pub(super) async fn finish(&mut self) -> Vec<FilesChanged> {
        let written = self.stretch.written;
        let open = self.looking.take().filter(|look| {
            if !written {
                look.abort();
            }
            written
        });
        self.between.wanted = false;
        self.end_stretch();
        let beside = std::mem::take(&mut self.beside).into_iter().map(|(look, _)| look);
        for mut look in open.into_iter().chain(beside) {
            if let Err(error) = over(Some(&mut look)).await {
                tracing::warn!(%error, "the last look at the project failed");
            }
        }
        self.changes()
    }
}

async fn over(look: Option<&mut Looking>) -> Result<Vec<String>, ObserverError> {
    let Some(look) = look else { return std::future::pending().await };
    look.await.unwrap_or_else(|error| {
        Err(ObserverError::Failed(format!("the task that reads the project failed: {error}")))
    })
}

async fn over_beside(look: Option<&mut (Looking, Beside)>) -> (Result<Vec<String>, ObserverError>, Beside) {
    let Some((look, at)) = look else { return std::future::pending().await };
    (over(Some(look)).await, *at)
}

fn now_ns() -> i64 {
    nanoseconds(SystemTime::now())
}
