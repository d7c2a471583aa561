//! The tool calls of one turn. Each gets exactly one result. The model gets all results in the order of the calls.
//!
//! Calls begin in order. A call that needs an approval is open alone, so that no other call changes what the person
//! decides on.

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

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    call: CallId,
    tool_use: ToolUse,
    state: CallState,
    progress: Option<CallProgress>,
    /// A text for the end of the result; `None` if nothing is added.
    remark: Option<String>,
    /// The open call of which this call is a part; `None` if the model or the person made the call.
    within: Option<CallId>,
    /// True if the person made the call, so that its result answers no call of the model.
    of_user: bool,
    /// The duration of a closed call in milliseconds.
    duration_ms: u64,
    /// The first run of the command; `None` unless the person is asked about another run.
    first_run: Option<Box<FirstRun>>,
    /// True if the log has the start of the call.
    logged: bool,
}

#[derive(Debug)]
enum CallState {
    Waiting,
    /// A worker or another component works on the call.
    Open(Open),
    /// A change of files that shares a request with other changes.
    Together(Box<SubjectChange>, Stage),
    /// A command that was denied something. The person will be asked about another run.
    Held(Box<Offer>),
    /// An approval is requested.
    Asking(Box<Asking>),
    Closed(Box<CallResult>),
}

/// The first run of a command that may run again with more access.
#[derive(Clone, Debug)]
pub(super) struct FirstRun {
    pub(super) result: CallResult,
    pub(super) observed: Observation,
}

/// The duration of a call, and the component that observed its end.
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

/// The work on an open call, and the component that does it.
#[derive(Clone, Debug)]
pub(super) enum Open {
    Serving(ToolCall),
    /// A worker prepares the change.
    Preparing(ToolCall),
    /// A one-shot worker carries out the change.
    Committing(Box<Committing>),
    /// A component other than a worker carries out the call, after an approval if one was needed.
    Served(ServedCall),
    /// A sub-agent carries out the call.
    Delegated,
    /// A plan is being written to its file.
    WritingPlan(Box<Draft>),
    /// The acceptance commands of a step run, each as a separate call.
    Accepting(StepUpdate),
    /// The files that changed in the project are determined, then the step gets its status.
    Looking(Box<MadeUp>),
}

/// A report on a step whose acceptance commands all have a result.
#[derive(Clone, Debug)]
pub(super) struct MadeUp {
    pub(super) call: CallId,
    pub(super) update: StepUpdate,
    pub(super) results: Vec<(CallId, CallResult)>,
}

#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) approval: ApprovalId,
    pub(super) ask: Ask,
    pub(super) subject: Subject,
}

/// An approved call. A one-shot worker carries it out once the approval is in the log.
#[derive(Clone, Debug)]
pub(super) struct Committing {
    pub(super) tool: ToolCall,
    pub(super) effect: Arc<Effect>,
    /// The approved access beyond the standing rights.
    pub(super) grant: Grant,
    /// The change of the standing rights after the call; `None` if the approval is for this call alone.
    pub(super) after: Option<RightsChange>,
}

impl Open {
    /// True if the call is a command: its output arrives in pieces.
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

    /// True if no other call may begin, because this call is approved or is being prepared for an approval.
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
    pub(super) fn push(&mut self, call: CallId, tool_use: ToolUse) {
        self.add(call, tool_use, None);
    }

    /// Adds a call that is a part of an open call. The model sees its result as a part of the open call's result.
    pub(super) fn push_within(&mut self, whole: CallId, call: CallId, tool_use: ToolUse) {
        self.add(call, tool_use, Some(whole));
    }

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

    /// Returns the report on a step whose acceptance commands all have a result; `None` if there is none.
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

    /// Returns the next call to begin; `None` while a request or an approved action is open.
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

    /// True if a call has begun and is open. This excludes calls that wait: for the calls that are their parts, for the
    /// question about another run, or for earlier changes of a shared approval.
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

    /// True if the model made the call, and not the person or the supervisor.
    pub(super) fn is_whole(&self, call: CallId) -> bool {
        !self.is_of_user(call) && !self.is_part(call)
    }

    pub(super) fn is_of_user(&self, call: CallId) -> bool {
        self.slots.iter().any(|slot| slot.call == call && slot.of_user)
    }

    pub(super) fn are_of_user(&self) -> bool {
        !self.slots.is_empty() && self.slots.iter().all(|slot| slot.of_user)
    }

    pub(super) fn are_closed(&self) -> bool {
        self.slots.iter().all(|slot| matches!(slot.state, CallState::Closed(_)))
    }

    pub(super) fn open_as(&mut self, call: CallId, open: Open) {
        self.set(call, CallState::Open(open));
    }

    pub(super) fn ask(&mut self, call: CallId, asking: Asking) {
        self.set(call, CallState::Asking(Box::new(asking)));
    }

    /// Holds a command with the result of its first run until the person is asked about another run.
    pub(super) fn hold(&mut self, call: CallId, offer: Box<Offer>, first: FirstRun) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == call) {
            slot.first_run = Some(Box::new(first));
        }
        self.set(call, CallState::Held(offer));
    }

    pub(super) fn set_offer(&mut self, call: CallId, offer: Offer) {
        self.set(call, CallState::Held(Box::new(offer)));
    }

    pub(super) fn held(&self, call: CallId) -> Option<&Offer> {
        self.all_held().find(|(held, _)| *held == call).map(|(_, offer)| offer)
    }

    pub(super) fn all_held(&self) -> impl Iterator<Item = (CallId, &Offer)> {
        self.slots.iter().filter_map(|slot| match &slot.state {
            CallState::Held(offer) => Some((slot.call, &**offer)),
            _ => None,
        })
    }

    pub(super) fn next_held(&self) -> Option<(CallId, Offer)> {
        self.all_held().next().map(|(call, offer)| (call, offer.clone()))
    }

    /// True if the call has run once, and the person is or was asked about another run.
    pub(super) fn had_run(&self, call: CallId) -> bool {
        self.slots.iter().any(|slot| slot.call == call && slot.first_run.is_some())
    }

    /// Removes and returns the first run of a call that is not run again; `None` if the call has not run.
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

    pub(super) fn note_progress(&mut self, call: CallId, progress: CallProgress) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == call) {
            slot.progress = Some(progress);
        }
    }

    pub(super) fn take_progress(&mut self, call: CallId) -> Option<CallProgress> {
        self.slots.iter_mut().find(|slot| slot.call == call)?.progress.take()
    }

    /// Records a text for the end of a call's result.
    pub(super) fn remark(&mut self, call: CallId, text: String) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == call) {
            slot.remark = Some(text);
        }
    }

    /// Returns the result with the recorded text at its end.
    pub(super) fn remarked(&mut self, call: CallId, mut result: CallResult) -> CallResult {
        let slot = self.slots.iter_mut().find(|slot| slot.call == call);
        if let Some(text) = slot.and_then(|slot| slot.remark.take()) {
            result.content.push('\n');
            result.content.push_str(&text);
        }
        result
    }

    /// Returns the work on an open call; `None` if the call is not open.
    pub(super) fn open(&self, call: CallId) -> Option<&Open> {
        self.slots.iter().find_map(|slot| match &slot.state {
            CallState::Open(open) if slot.call == call => Some(open),
            _ => None,
        })
    }

    /// Returns the call of a request for an approval; `None` if the request is not open.
    pub(super) fn asking(&self, approval: ApprovalId) -> Option<(CallId, &Asking)> {
        self.slots.iter().find_map(|slot| match &slot.state {
            CallState::Asking(asking) if asking.approval == approval => Some((slot.call, &**asking)),
            _ => None,
        })
    }

    pub(super) fn tool_use(&self, call: CallId) -> Option<&ToolUse> {
        self.slots.iter().find(|slot| slot.call == call).map(|slot| &slot.tool_use)
    }

    /// Returns the tool use of a call; `None` if the call is closed.
    pub(super) fn unclosed(&self, call: CallId) -> Option<&ToolUse> {
        let unclosed = |slot: &&Slot| slot.call == call && !matches!(slot.state, CallState::Closed(_));
        self.slots.iter().find(unclosed).map(|slot| &slot.tool_use)
    }

    pub(super) fn count_unclosed(&self) -> u64 {
        self.slots.iter().filter(|slot| !matches!(slot.state, CallState::Closed(_))).count() as u64
    }

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

    /// Returns the calls on which a worker or another component works.
    pub(super) fn all_open(&self) -> Vec<CallId> {
        self.ids(|state| matches!(state, CallState::Open(_)))
    }

    pub(super) fn all_waiting(&self) -> Vec<CallId> {
        self.ids(|state| matches!(state, CallState::Waiting))
    }

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

    /// Returns the duration of a closed call in milliseconds.
    pub(super) fn duration(&self, call: CallId) -> u64 {
        self.slots.iter().find(|slot| slot.call == call).map_or(0, |slot| slot.duration_ms)
    }

    pub(super) fn is_part(&self, call: CallId) -> bool {
        self.slots.iter().any(|slot| slot.call == call && slot.within.is_some())
    }

    /// Closes a call with its result, unless it is closed already.
    pub(super) fn close(&mut self, call: CallId, result: CallResult, duration_ms: u64) {
        let unclosed = |slot: &&mut Slot| slot.call == call && !matches!(slot.state, CallState::Closed(_));
        if let Some(slot) = self.slots.iter_mut().find(unclosed) {
            slot.duration_ms = duration_ms;
        }
        // Parts of a closed call that have not begun never begin.
        self.slots.retain(|slot| slot.within != Some(call) || !matches!(slot.state, CallState::Waiting));
        self.set(call, CallState::Closed(Box::new(result)));
    }

    /// Takes the results of closed calls in order, each with the model's id of its call; `None` for a user's call.
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

    /// Returns the first open command; `None` if no command is open.
    pub(super) fn running_command(&self) -> Option<CallId> {
        let runs = |call: &CallId| self.open(*call).is_some_and(Open::prints);
        self.all_open().into_iter().find(runs)
    }

    /// Returns the text of an open command; `None` for any other call.
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
