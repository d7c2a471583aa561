//! Snapshots of the project in a running session, and the changed files that their comparison shows.

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

/// Maximum duration of a snapshot between calls. After a longer one, snapshots are taken only before and after turns.
const QUICK: Duration = Duration::from_millis(500);

type SnapshotTask = JoinHandle<Result<Vec<String>, ObserverError>>;

/// Takes a snapshot before a turn's first call that may write, and after a turn in which a call may have written.
pub(super) struct Snapshots {
    rewinder: Rewinder,
    due: Vec<EventId>,
    /// True if the first agent may write in the project without asking.
    may_write: bool,
    in_turn: bool,
    /// Agents that execute a plan in addition to the first agent.
    executors: BTreeSet<AgentId>,
    stretch: Stretch,
    /// Snapshot before a write. The writing call waits for this snapshot.
    before_write: Option<SnapshotTask>,
    /// Snapshots at the end of a turn or between calls, for which no call waits.
    background: VecDeque<(SnapshotTask, Background)>,
    between: Between,
    writers: Writers,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Background {
    EndOfTurn,
    EndOfCall,
}

struct Between {
    /// True if a front end shows changes during a turn, and no snapshot between calls was slow.
    wanted: bool,
    /// Start of the present snapshot; `None` if none is being taken.
    began: Option<Instant>,
    /// True if a call ended after `began`.
    again: bool,
}

/// Period in which changes count as made by agents: a turn, or the execution of a plan.
#[derive(Default)]
struct Stretch {
    /// True if a snapshot was taken in this period.
    is_taken: bool,
    written: bool,
}

impl Snapshots {
    /// Creates the state without a snapshot. If `is_watched`, snapshots are taken between the calls of a turn as well.
    pub(super) fn new(rewinder: Rewinder, is_watched: bool) -> Self {
        Self {
            writers: Writers::new(rewinder.project().clone()),
            between: Between { wanted: is_watched, began: None, again: false },
            rewinder,
            due: Vec::new(),
            may_write: false,
            in_turn: false,
            executors: BTreeSet::new(),
            stretch: Stretch { is_taken: false, written: false },
            before_write: None,
            background: VecDeque::new(),
        }
    }

    pub(super) const fn rewinder(&self) -> &Rewinder {
        &self.rewinder
    }

    /// Handles a logged event. A snapshot begins while the model or the user is busy, so that nothing waits for it.
    pub(super) fn note(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::ToolCallFinished { call, diffs, .. } => {
                let may_have_written = self.writers.ended(&event.agent, *call, diffs, now_ns());
                self.take_between(may_have_written);
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
            self.take();
        }
    }

    fn take(&mut self) {
        if self.before_write.is_none() {
            let at = At::Messages(std::mem::take(&mut self.due));
            self.stretch.is_taken = true;
            self.before_write = Some(self.spawn(at));
        }
    }

    fn spawn(&self, at: At) -> SnapshotTask {
        let (rewinder, written) = (self.rewinder.clone(), self.writers.written());
        tokio::spawn(async move { rewinder.snapshot_with(at, written).await })
    }

    /// Takes a snapshot after a call that may have written, unless snapshots are too slow for that.
    fn take_between(&mut self, may_have_written: bool) {
        if !self.between.wanted || !may_have_written {
            return;
        }
        if self.between.began.is_some() {
            self.between.again = true;
            return;
        }
        self.between.began = Some(Instant::now());
        let task = self.spawn(At::Call);
        self.background.push_back((task, Background::EndOfCall));
    }

    fn end_between(&mut self) {
        if let Some(began) = self.between.began.take() {
            self.between.wanted &= began.elapsed() <= QUICK;
            let again = std::mem::take(&mut self.between.again);
            self.take_between(again);
        }
    }

    /// Records the start of a call that may write below `roots`; if `only` is given, only to these files.
    pub(super) fn call_begins(&mut self, call: AgentCall, roots: Vec<WirePath>, only: Option<Vec<WirePath>>) {
        self.writers.began(call, roots, only, now_ns());
    }

    /// Returns the changes found by the snapshots since the previous call.
    pub(super) fn changes(&mut self) -> Vec<FilesChanged> {
        let untold = self.rewinder.take_untold();
        untold.into_iter().filter_map(|result| self.writers.tell(result.seen, result.ignored)).collect()
    }

    /// Ends the period in which changes count as made by agents, unless a plan is still executed.
    fn end_turn(&mut self) {
        if self.executors.is_empty() {
            self.end_stretch();
        }
    }

    fn end_stretch(&mut self) {
        let rewinder = self.rewinder.clone();
        let Stretch { is_taken, written } = std::mem::take(&mut self.stretch);
        if written {
            let task = self.spawn(At::End);
            self.background.push_back((task, Background::EndOfTurn));
        } else if is_taken {
            let rest = tokio::spawn(async move { rewinder.rest().await });
            self.background.push_back((rest, Background::EndOfTurn));
        }
    }

    /// Takes a snapshot if there was none since the user's last message. True while the snapshot is being taken; no
    /// call may write then. Without it, changes by a plan after a turn would count as made by somebody else.
    pub(super) fn before_a_write(&mut self) -> bool {
        self.stretch.written = true;
        if !self.stretch.is_taken || !self.due.is_empty() {
            self.take();
        }
        self.before_write.is_some()
    }

    /// Waits for the end of a snapshot. Returns sentences about files that the snapshot lacks. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Vec<String>, ObserverError> {
        let background = self.background.front_mut();
        let (taken, background) = tokio::select! {
            taken = over(self.before_write.as_mut()) => (taken, None),
            (taken, at) = over_in_background(background) => (taken, Some(at)),
        };
        match background {
            None => self.before_write = None,
            Some(_) => drop(self.background.pop_front()),
        }
        if background != Some(Background::EndOfCall) {
            return taken;
        }
        // The snapshot at the end of the turn reports the error.
        self.between.wanted &= taken.is_ok();
        self.end_between();
        Ok(taken.unwrap_or_default())
    }

    /// Waits for the open snapshots, and returns the changed files. Aborts a snapshot for a write that never began.
    pub(super) async fn finish(&mut self) -> Vec<FilesChanged> {
        let written = self.stretch.written;
        let open = self.before_write.take().filter(|task| {
            if !written {
                task.abort();
            }
            written
        });
        self.between.wanted = false;
        self.end_stretch();
        let background = std::mem::take(&mut self.background).into_iter().map(|(task, _)| task);
        for mut task in open.into_iter().chain(background) {
            if let Err(error) = over(Some(&mut task)).await {
                tracing::warn!(%error, "the last snapshot of the project failed");
            }
        }
        self.changes()
    }
}

async fn over(task: Option<&mut SnapshotTask>) -> Result<Vec<String>, ObserverError> {
    let Some(task) = task else { return std::future::pending().await };
    task.await.unwrap_or_else(|error| {
        Err(ObserverError::Failed(format!("the task that reads the project failed: {error}")))
    })
}

async fn over_in_background(
    task: Option<&mut (SnapshotTask, Background)>,
) -> (Result<Vec<String>, ObserverError>, Background) {
    let Some((task, at)) = task else { return std::future::pending().await };
    (over(Some(task)).await, *at)
}

fn now_ns() -> i64 {
    nanoseconds(SystemTime::now())
}
