//! The tool calls of one turn: each gets exactly one result, and all go back in the order of the calls.
//!
//! Calls begin in order. One that somebody has to approve begins when all before it are closed, and those after it wait
//! until it is closed: what a person decides on is what will be there then.

mod changes;

use std::sync::Arc;

use gate::approval::{Subject, SubjectChange};
use gate::tools::{PermittedFetch, ServedCall, StepUpdate};
use gate::{Ask, Offer};
use ipc::effect::Effect;
use ipc::id::{ApprovalId, CallId, ToolUseId};
use ipc::rights::{Grant, RightsChange};
use ipc::tool::ToolCall;
use protocol::event::ObservedBy;

pub(super) use self::changes::Stage;
use super::planning::Draft;
use crate::core::CallProgress;
use crate::core::call::{CallResult, ToolUse};

/// The tool calls of one turn.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    call: CallId,
    tool_use: ToolUse,
    state: CallState,
    /// Its progress, if that was told.
    progress: Option<CallProgress>,
    /// The end of its result.
    remark: Option<String>,
    /// The call that it is made for, where the model did not make it.
    within: Option<CallId>,
    /// True if the user made it, so that its result answers no call of the model's.
    of_user: bool,
    /// The time that it took until it was closed, in milliseconds.
    duration_ms: u64,
    /// The run that there was, if somebody is to be asked for another one.
    first_run: Option<Box<FirstRun>>,
    /// True if the log has its beginning.
    logged: bool,
}

#[derive(Debug)]
enum CallState {
    /// It has not begun.
    Waiting,
    /// A worker has it, or whoever else serves it.
    Open(Open),
    /// It changes files, and is asked about together with others.
    Together(Box<SubjectChange>, Stage),
    /// Its command was denied something, and waits for the question whether to run it again.
    Held(Box<Offer>),
    /// Somebody is asked.
    Asking(Box<Asking>),
    /// It has its result.
    Closed(Box<CallResult>),
}

/// The run that there was of a call that is asked about.
#[derive(Clone, Debug)]
pub(super) struct FirstRun {
    pub(super) result: CallResult,
    pub(super) observed: Observation,
}

/// Duration of a call, and the process that observed its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) duration_ms: u64,
    pub(super) by: ObservedBy,
}

impl Observation {
    pub(super) const fn by_worker(duration_ms: u64) -> Self {
        Self { duration_ms, by: ObservedBy::Worker }
    }

    pub(super) const fn by_supervisor(duration_ms: u64) -> Self {
        Self { duration_ms, by: ObservedBy::Supervisor }
    }
}

/// The one who has a call that has begun.
#[derive(Clone, Debug)]
pub(super) enum Open {
    /// A worker serves it.
    Serving(ToolCall),
    /// A worker works out the effect.
    Preparing(ToolCall),
    /// A worker of its own carries the effect out.
    Committing(Box<Committing>),
    /// A server does that is no worker, after an approval if that was needed.
    Served(ServedCall),
    /// A sub-agent does.
    Delegated,
    /// A plan is written to its file.
    WritingPlan(Box<Draft>),
    /// The acceptance commands of a step are run, each as a call of its own.
    Accepting(StepUpdate),
    /// The changes of a step are looked at, before it has its status.
    Looking(Box<MadeUp>),
}

/// A claim about a step, all of whose acceptance commands have a result.
#[derive(Clone, Debug)]
pub(super) struct MadeUp {
    pub(super) call: CallId,
    pub(super) update: StepUpdate,
    pub(super) results: Vec<(CallId, CallResult)>,
}

/// A call that somebody is asked about.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) approval: ApprovalId,
    pub(super) ask: Ask,
    pub(super) subject: Subject,
}

/// A call that was approved.
#[derive(Clone, Debug)]
pub(super) struct Committing {
    pub(super) tool: ToolCall,
    pub(super) effect: Arc<Effect>,
    /// Its access beyond the standing rights.
    pub(super) grant: Grant,
    /// The change of the standing rights that follows it.
    pub(super) after: Option<RightsChange>,
}

impl Open {
    /// True if it runs a command, whose output comes in pieces.
    pub(super) fn prints(&self) -> bool {
        match self {
            Self::Serving(tool) => matches!(tool, ToolCall::ShellExec(_)),
            Self::Committing(committing) => matches!(committing.tool, ToolCall::ShellExec(_)),
            Self::Preparing(_)
            | Self::Served(_)
            | Self::Delegated
            | Self::WritingPlan(_)
            | Self::Accepting(_)
            | Self::Looking(_) => false,
        }
    }

    /// True if it was approved, or is about to be: no other call begins beside it.
    const fn is_alone(&self) -> bool {
        matches!(
            self,
            Self::Preparing(_)
                | Self::Committing(_)
                | Self::Served(
                    ServedCall::External(_) | ServedCall::Fetch(PermittedFetch { is_approved: true, .. })
                )
                | Self::WritingPlan(_)
                | Self::Accepting(_)
                | Self::Looking(_)
        )
    }
}

impl Slots {
    /// Adds a call that has not begun.
    pub(super) fn push(&mut self, call: CallId, tool_use: ToolUse) {
        self.add(call, tool_use, None);
    }

    /// Adds a call that an open one is made of: it has a result of its own, which the model sees as a part of the open
    /// one's.
    pub(super) fn push_within(&mut self, whole: CallId, call: CallId, tool_use: ToolUse) {
        self.add(call, tool_use, Some(whole));
    }

    /// Adds a call of the user's.
    pub(super) fn push_of_user(&mut self, call: CallId, tool_use: ToolUse) {
        self.add(call, tool_use, None);
        if let Some(slot) = self.slots.last_mut() {
            slot.of_user = true;
        }
    }

    fn add(&mut self, call: CallId, tool_use: ToolUse, within: Option<CallId>) {
        let (state, of_user) = (CallState::Waiting, false);
        self.slots.push(Slot {
            call,
            tool_use,
            state,
            progress: None,
            remark: None,
            within,
            of_user,
            duration_ms: 0,
            first_run: None,
            logged: false,
        });
    }

    /// The open call that is made of others, if they are all closed.
    pub(super) fn made_up(&self) -> Option<MadeUp> {
        let made = |slot: &Slot| match &slot.state {
            CallState::Open(Open::Accepting(update)) => Some((slot.call, update.clone())),
            _ => None,
        };
        let (whole, update) = self.slots.iter().find_map(made)?;
        let parts = self.slots.iter().filter(|slot| slot.within == Some(whole));
        let results = parts.map(|slot| match &slot.state {
            CallState::Closed(result) => Some((slot.call, result.as_ref().clone())),
            _ => None,
        });
        Some(MadeUp { call: whole, update, results: results.collect::<Option<_>>()? })
    }

    /// The call that begins next. None begins while one is with a person, or is carried out as approved.
    pub(super) fn next(&self) -> Option<(CallId, ToolUse)> {
        let holds = |slot: &Slot| match &slot.state {
            CallState::Together(..) | CallState::Held(_) | CallState::Asking(_) => true,
            CallState::Open(open) => open.is_alone() || slot.within.is_some(),
            CallState::Waiting | CallState::Closed(_) => false,
        };
        let mut holding = self.slots.iter().filter(|slot| holds(slot)).map(|slot| slot.call);
        let (whole, other) = (holding.next(), holding.next());
        let waits = |slot: &&Slot| matches!(slot.state, CallState::Waiting);
        // The parts of a call begin while it is open, one after the other.
        let next = self.slots.iter().filter(waits).find(|slot| whole.is_none() || slot.within == whole);
        next.filter(|_| other.is_none()).map(|slot| (slot.call, slot.tool_use.clone()))
    }

    /// True if a call that has begun is not closed, apart from one that is made of others.
    pub(super) fn any_begun(&self) -> bool {
        self.slots.iter().any(|slot| match &slot.state {
            CallState::Open(Open::Accepting(_))
            | CallState::Together(_, Stage::Approved)
            | CallState::Waiting
            | CallState::Held(_)
            | CallState::Closed(_) => false,
            CallState::Open(_) | CallState::Together(..) | CallState::Asking(_) => true,
        })
    }

    /// True of a call that the model made, which is no part of another.
    pub(super) fn is_whole(&self, call: CallId) -> bool {
        !self.is_of_user(call) && !self.is_part(call)
    }

    /// True of a call that the user made.
    pub(super) fn is_of_user(&self, call: CallId) -> bool {
        self.slots.iter().any(|slot| slot.call == call && slot.of_user)
    }

    /// True if there are calls, and all of them are the user's.
    pub(super) fn are_of_user(&self) -> bool {
        !self.slots.is_empty() && self.slots.iter().all(|slot| slot.of_user)
    }

    /// True if every call has its result.
    pub(super) fn are_closed(&self) -> bool {
        self.slots.iter().all(|slot| matches!(slot.state, CallState::Closed(_)))
    }

    /// Notes that a call has begun, and with whom.
    pub(super) fn open_as(&mut self, call: CallId, open: Open) {
        self.set(call, CallState::Open(open));
    }

    /// Notes that somebody is asked about a call.
    pub(super) fn ask(&mut self, call: CallId, asking: Asking) {
        self.set(call, CallState::Asking(Box::new(asking)));
    }

    /// Notes that a call waits for the question whether to run its command again.
    pub(super) fn hold(&mut self, call: CallId, offer: Box<Offer>, first: FirstRun) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == call) {
            slot.first_run = Some(Box::new(first));
        }
        self.set(call, CallState::Held(offer));
    }

    /// Puts another offer into the place of one that waits for its question.
    pub(super) fn set_offer(&mut self, call: CallId, offer: Offer) {
        self.set(call, CallState::Held(Box::new(offer)));
    }

    /// The offer of a call that waits for its question.
    pub(super) fn held(&self, call: CallId) -> Option<&Offer> {
        self.all_held().find(|(held, _)| *held == call).map(|(_, offer)| offer)
    }

    /// The calls that wait for their question, with their offers.
    pub(super) fn all_held(&self) -> impl Iterator<Item = (CallId, &Offer)> {
        self.slots.iter().filter_map(|slot| match &slot.state {
            CallState::Held(offer) => Some((slot.call, &**offer)),
            _ => None,
        })
    }

    /// The first call that waits for its question.
    pub(super) fn next_held(&self) -> Option<(CallId, Offer)> {
        self.all_held().next().map(|(call, offer)| (call, offer.clone()))
    }

    /// True if somebody is to be asked for another run of a call, or was.
    pub(super) fn had_run(&self, call: CallId) -> bool {
        self.slots.iter().any(|slot| slot.call == call && slot.first_run.is_some())
    }

    /// The run that there was of a call that is not run again.
    pub(super) fn take_first_run(&mut self, call: CallId) -> Option<FirstRun> {
        let slot = self.slots.iter_mut().find(|slot| slot.call == call)?;
        slot.first_run.take().map(|first| *first)
    }

    fn set(&mut self, call: CallId, state: CallState) {
        let unclosed = |slot: &&mut Slot| slot.call == call && !matches!(slot.state, CallState::Closed(_));
        if let Some(slot) = self.slots.iter_mut().find(unclosed) {
            slot.state = state;
        }
    }

    /// Keeps how far an open call has come.
    pub(super) fn note_progress(&mut self, call: CallId, progress: CallProgress) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == call) {
            slot.progress = Some(progress);
        }
    }

    /// Takes the progress of a call as it was told last.
    pub(super) fn take_progress(&mut self, call: CallId) -> Option<CallProgress> {
        self.slots.iter_mut().find(|slot| slot.call == call)?.progress.take()
    }

    /// Keeps what the result of an open call has to end with.
    pub(super) fn remark(&mut self, call: CallId, text: String) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == call) {
            slot.remark = Some(text);
        }
    }

    /// A result, with what it has to end with.
    pub(super) fn remarked(&mut self, call: CallId, mut result: CallResult) -> CallResult {
        let slot = self.slots.iter_mut().find(|slot| slot.call == call);
        if let Some(text) = slot.and_then(|slot| slot.remark.take()) {
            result.content.push('\n');
            result.content.push_str(&text);
        }
        result
    }

    /// Returns the one who has a call that has begun and is not closed.
    pub(super) fn open(&self, call: CallId) -> Option<&Open> {
        self.slots.iter().find_map(|slot| match &slot.state {
            CallState::Open(open) if slot.call == call => Some(open),
            _ => None,
        })
    }

    /// The call that this request is about.
    pub(super) fn asking(&self, approval: ApprovalId) -> Option<(CallId, &Asking)> {
        self.slots.iter().find_map(|slot| match &slot.state {
            CallState::Asking(asking) if asking.approval == approval => Some((slot.call, &**asking)),
            _ => None,
        })
    }

    /// Returns a call as the model wrote it.
    pub(super) fn tool_use(&self, call: CallId) -> Option<&ToolUse> {
        self.slots.iter().find(|slot| slot.call == call).map(|slot| &slot.tool_use)
    }

    /// The model's id of a call that is not closed.
    pub(super) fn unclosed(&self, call: CallId) -> Option<&ToolUse> {
        let unclosed = |slot: &&Slot| slot.call == call && !matches!(slot.state, CallState::Closed(_));
        self.slots.iter().find(unclosed).map(|slot| &slot.tool_use)
    }

    /// Returns the number of calls that are not closed.
    pub(super) fn count_unclosed(&self) -> u64 {
        self.slots.iter().filter(|slot| !matches!(slot.state, CallState::Closed(_))).count() as u64
    }

    /// The results that there are.
    pub(super) fn results(&self) -> impl Iterator<Item = &CallResult> {
        self.slots.iter().filter_map(|slot| match &slot.state {
            CallState::Closed(result) => Some(result.as_ref()),
            CallState::Waiting
            | CallState::Open(_)
            | CallState::Together(..)
            | CallState::Held(_)
            | CallState::Asking(_) => None,
        })
    }

    /// The calls that workers and servers have.
    pub(super) fn all_open(&self) -> Vec<CallId> {
        self.ids(|state| matches!(state, CallState::Open(_)))
    }

    /// The calls that have not begun.
    pub(super) fn all_waiting(&self) -> Vec<CallId> {
        self.ids(|state| matches!(state, CallState::Waiting))
    }

    /// The requests that are waited for.
    pub(super) fn all_asking(&self) -> Vec<ApprovalId> {
        let asking = self.slots.iter().filter_map(|slot| match &slot.state {
            CallState::Asking(asking) => Some(asking.approval),
            _ => None,
        });
        asking.collect()
    }

    fn ids(&self, is: impl Fn(&CallState) -> bool) -> Vec<CallId> {
        self.slots.iter().filter(|slot| is(&slot.state)).map(|slot| slot.call).collect()
    }

    /// The time that a closed call took, in milliseconds.
    pub(super) fn duration(&self, call: CallId) -> u64 {
        self.slots.iter().find(|slot| slot.call == call).map_or(0, |slot| slot.duration_ms)
    }

    /// True of a call that the model did not make.
    pub(super) fn is_part(&self, call: CallId) -> bool {
        self.slots.iter().any(|slot| slot.call == call && slot.within.is_some())
    }

    /// Gives a call its result. A call that is closed stays as it is.
    pub(super) fn close(&mut self, call: CallId, result: CallResult, duration_ms: u64) {
        let unclosed = |slot: &&mut Slot| slot.call == call && !matches!(slot.state, CallState::Closed(_));
        if let Some(slot) = self.slots.iter_mut().find(unclosed) {
            slot.duration_ms = duration_ms;
        }
        // What has not begun of a call that is over never begins.
        self.slots.retain(|slot| slot.within != Some(call) || !matches!(slot.state, CallState::Waiting));
        self.set(call, CallState::Closed(Box::new(result)));
    }

    /// Takes the results of closed calls in the order of the calls, each with the model's id of the call that it
    /// answers; the user's calls have none. A call that is not closed stays.
    pub(super) fn take_results(&mut self) -> Vec<(Option<ToolUseId>, CallResult)> {
        let is_closed = |slot: &mut Slot| matches!(slot.state, CallState::Closed(_));
        let closed: Vec<_> = self.slots.extract_if(.., is_closed).collect();
        let whole = closed.into_iter().filter(|slot| slot.within.is_none());
        let results = whole.filter_map(|slot| match slot.state {
            CallState::Closed(result) => Some(((!slot.of_user).then_some(slot.tool_use.id), *result)),
            CallState::Waiting
            | CallState::Open(_)
            | CallState::Together(..)
            | CallState::Held(_)
            | CallState::Asking(_) => None,
        });
        results.collect()
    }

    /// The first command that a worker runs.
    pub(super) fn running_command(&self) -> Option<CallId> {
        let runs = |call: &CallId| self.open(*call).is_some_and(Open::prints);
        self.all_open().into_iter().find(runs)
    }

    /// The text of a command that a worker runs.
    pub(super) fn command(&self, call: CallId) -> Option<String> {
        let tool = match self.open(call)? {
            Open::Serving(tool) => tool,
            Open::Committing(committing) => &committing.tool,
            _ => return None,
        };
        match tool {
            ToolCall::ShellExec(command) => Some(command.command.clone()),
            _ => None,
        }
    }
}
