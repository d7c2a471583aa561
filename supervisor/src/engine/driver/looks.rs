//! The looks of a running session, and what they tell of the files that changed.

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

/// The longest that a look may take for another one to follow the next call: in a large project the end of the turn
/// tells everything.
const QUICK: Duration = Duration::from_millis(500);

/// A look that goes on.
type Looking = JoinHandle<Result<Vec<String>, ObserverError>>;

/// The looks of a running session: after a message of the user's, as soon as a call may write, and at the end of a
/// turn in which one did.
pub(super) struct Looks {
    rewinder: Rewinder,
    /// Messages of the user's since the last look.
    due: Vec<EventId>,
    /// True if the first agent may write in the project without asking.
    may_write: bool,
    /// True while the first agent has a turn.
    in_turn: bool,
    /// The agents that execute a plan beside it.
    executors: BTreeSet<AgentId>,
    stretch: Stretch,
    /// The look before a write, which waits for it.
    looking: Option<Looking>,
    /// The looks that nobody waits for, at the end of a turn and between its calls.
    beside: VecDeque<(Looking, Beside)>,
    between: Between,
    writers: Writers,
}

/// The occasion of a look that nobody waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    EndOfTurn,
    EndOfCall,
}

/// The looks between the calls of a turn.
struct Between {
    /// True if somebody watches, and a look is quick enough.
    wanted: bool,
    /// When the one that goes on began.
    began: Option<Instant>,
    /// True if a call ended since then.
    again: bool,
}

/// The time in which what changes is the agents' own: a turn, or the execution of a plan beside it.
#[derive(Default)]
struct Stretch {
    /// True if the project was looked at in it.
    looked: bool,
    /// True if a call may have written in it.
    written: bool,
}

impl Looks {
    /// Looks by this one; between the calls of a turn as well if somebody watches.
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

    /// Takes note of what was logged. The model, or a person who is asked, takes longer than a look: it begins before
    /// they answer.
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

    /// Has the project looked at, if it was not since the last message.
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

    /// Has the project looked at after a call, if that takes no longer than a person waits for.
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

    /// A look that nobody waited for is over.
    fn end_between(&mut self) {
        if let Some(began) = self.between.began.take() {
            self.between.wanted &= began.elapsed() <= QUICK;
            let again = std::mem::take(&mut self.between.again);
            self.look_between(again);
        }
    }

    /// A call begins that may write in these roots; a file tool, in these files only.
    pub(super) fn call_begins(&mut self, call: AgentCall, roots: Vec<WirePath>, only: Option<Vec<WirePath>>) {
        self.writers.began(call, roots, only, now_ns());
    }

    /// The files that changed, as looks saw them since this was asked last.
    pub(super) fn changes(&mut self) -> Vec<FilesChanged> {
        let untold = self.rewinder.take_untold();
        untold.into_iter().filter_map(|look| self.writers.tell(look.seen, look.ignored)).collect()
    }

    /// While a plan is executed, what changes is still the agents' own.
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

    /// Has the project looked at, if it was not since the last message; true while that goes on: nothing may write.
    /// What a plan changes after the last turn is not taken for somebody else's either.
    pub(super) fn before_a_write(&mut self) -> bool {
        self.stretch.written = true;
        if !self.stretch.looked || !self.due.is_empty() {
            self.look();
        }
        self.looking.is_some()
    }

    /// Waits for a look. Cancel safe.
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
        // The end of the turn tells what is wrong.
        self.between.wanted &= looked.is_ok();
        self.end_between();
        Ok(looked.unwrap_or_default())
    }

    /// Waits for the looks that are not over; the files that changed. One before a write that never came is given up:
    /// nobody takes back what was not changed.
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

/// The end of a look; none ever comes where there is none.
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
