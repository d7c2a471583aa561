//! Results of calls: each call is closed once, and the results of all calls of a reply make one message.
//!
//! A command with denials may be held without a result while the person is asked about another run with more access. If
//! the person refuses, the model gets the result of the first run, otherwise only that of the second run.

use gate::StandingRights;
use gate::approval::Subject;
use gate::tools::{LeftOut, ServedCall, diffs_of};
use ipc::effect::Effect as Approved;
use ipc::id::{CallId, ToolUseId};
use ipc::image::Image;
use ipc::message::CallOutcome;
use ipc::rights::{Grant, Network};
use ipc::tool::{ToolCall, ToolOutput};
use protocol::event::{
    EventKind, FileDiff, NoticeCode, ObservedBy, SubAgentResult, SubAgentStatus, ToolCallStatus, ToolKind,
};

use super::account::account_of;
use super::interruption::{
    IN_PART, Interruption, MODE_CHANGED, NETWORK_NARROWED, NETWORK_OFF, NOTHING_APPROVED, POLICY_CHANGED,
    SERVED_IN_PART, after, cut_short, with_output,
};
use super::machine::{After, Bounds, Calls};
use super::outcome::{Reading, log_denials};
use super::slots::{Committing, FirstRun, Observation, Open};
use crate::core::call::{CallResult, ToolUse};
use crate::core::conversation::{Budget, bytes, ends, tokens};
use crate::core::outbox::Outbox;
use crate::core::rights::Withdrawal;
use crate::core::{Effect, EndReason, ServedOutcome};

/// Tokens that are reserved for the text around a result and the note at its cut.
const AROUND: u64 = 50;

/// The advice in a shortened result if its tool has no advice of its own.
const ELSE: &str = "ask for less at once";

/// The text for the model after the person was asked about a denied access and did not allow it.
const LEFT: &str = "(The user was asked whether to allow this, and did not allow it.)";

/// The result for the model if a tool returned nothing.
const EMPTY: &str = "(the answer of the tool is empty)";

/// The end of a call, as its worker, server or sub-agent reported it.
#[derive(Debug)]
pub(in crate::core) enum CallEnd {
    /// Outcome from the agent's standing worker.
    OfWorker(CallOutcome),
    /// Outcome from a one-shot worker; `Err` if the outcome is unknown.
    OfOneShot(Result<CallOutcome, String>),
    OfServer(ServedOutcome),
    OfAgent(Box<SubAgentResult>),
    /// The worker was lost, for this reason.
    Lost(String),
}

impl CallEnd {
    fn pictures(&self) -> Vec<Image> {
        match self {
            Self::OfWorker(CallOutcome::Done(ToolOutput::Image(image)))
            | Self::OfOneShot(Ok(CallOutcome::Done(ToolOutput::Image(image)))) => vec![image.clone()],
            Self::OfServer(ServedOutcome::Pictured(_, images)) => images.clone(),
            Self::OfWorker(_) | Self::OfOneShot(_) | Self::OfServer(_) | Self::OfAgent(_) | Self::Lost(_) => {
                Vec::new()
            }
        }
    }
}

/// The pictures of a result that fit into the conversation, and for each other picture the reason why it does not fit.
#[derive(Debug, Default)]
pub(in crate::core) struct Pictures {
    pub(in crate::core) shown: Vec<Image>,
    pub(in crate::core) left_out: Vec<String>,
}

/// A call that a worker carried out, with the access of that worker.
struct Ran<'a> {
    tool: &'a ToolCall,
    standing: &'a StandingRights,
    pictures: Pictures,
}

impl Calls {
    /// Returns the pictures in a call's end; none if the call is not open, or cannot end in this way.
    pub(in crate::core) fn pictures(&self, call: CallId, end: &CallEnd) -> Vec<Image> {
        let is_ours = matches!(self.slots.open(call), Some(Open::WritingPlan(_) | Open::Looking(_)));
        if is_ours || !self.expects(call, end) { Vec::new() } else { end.pictures() }
    }

    /// True if the call is open in a state that can have this end.
    fn expects(&self, call: CallId, end: &CallEnd) -> bool {
        match (self.slots.open(call), end) {
            (Some(Open::Serving(_) | Open::Preparing(_)), CallEnd::OfWorker(_))
            | (Some(Open::Committing(_)), CallEnd::OfOneShot(_))
            | (Some(Open::Served(_) | Open::WritingPlan(_) | Open::Looking(_)), CallEnd::OfServer(_))
            | (Some(Open::Delegated), CallEnd::OfAgent(_))
            | (Some(_), CallEnd::Lost(_)) => true,
            (Some(_) | None, _) => false,
        }
    }

    /// Handles the end of a call. `pictures` has those that fit into the conversation.
    pub(in crate::core) fn on_end(
        &mut self,
        call: CallId,
        end: CallEnd,
        duration_ms: u64,
        pictures: Pictures,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        if !self.expects(call, &end) {
            return After::Rest;
        }
        match (end, self.slots.open(call).cloned()) {
            (CallEnd::OfWorker(outcome), Some(Open::Serving(tool) | Open::Preparing(tool))) => {
                if let CallOutcome::Done(ToolOutput::Command(result)) = &outcome {
                    self.hosts.end_process(result.process, out);
                }
                let observed = Observation::by_worker(duration_ms);
                let ran = Ran { tool: &tool, standing: bounds.rights.seen(), pictures };
                self.end_worked(call, ran, outcome, observed, bounds, out);
                After::GoOn
            }
            (CallEnd::OfOneShot(outcome), Some(Open::Committing(committing))) => {
                self.on_one_shot(call, *committing, outcome, duration_ms, pictures, bounds, out)
            }
            (CallEnd::OfServer(outcome), Some(Open::WritingPlan(draft))) => {
                self.on_plan_in_file(call, *draft, outcome, bounds, out)
            }
            (CallEnd::OfServer(outcome), Some(Open::Looking(claim))) => {
                self.on_looked(*claim, outcome, bounds, out)
            }
            (CallEnd::OfServer(outcome), Some(Open::Served(served))) => {
                let (result, by) = served_result(&served, outcome, pictures);
                self.finish_call(call, result, Observation { duration_ms, by }, bounds, out);
                After::GoOn
            }
            (CallEnd::OfAgent(report), _) => {
                let planner = self.planner.as_mut();
                let ended = planner.and_then(|planner| planner.after_execution(call, &report));
                let then = ended.as_ref().map_or("", |(told, _)| told);
                let content = format!("{}{then}", account_of(&report));
                let result = match report.status {
                    SubAgentStatus::Done => CallResult::answered(content),
                    SubAgentStatus::Interrupted => CallResult::not_done(ToolCallStatus::Interrupted, content),
                    _ => CallResult::not_done(ToolCallStatus::Failed, content),
                };
                self.finish_call(call, result, Observation::by_supervisor(report.duration_ms), bounds, out);
                ended.map_or(After::GoOn, |(_, unexecuted)| After::Executed(unexecuted))
            }
            (CallEnd::Lost(reason), Some(open)) => {
                let progress = self.slots.take_progress(call);
                let text = format!(
                    "the call was lost{}: {reason}. It may have been carried out in part: look before you repeat it",
                    after(progress.as_ref())
                );
                let text = with_output(text, progress.as_ref(), open.prints());
                let duration_ms = progress.map_or(0, |progress| progress.duration_ms);
                let result = CallResult::not_done(ToolCallStatus::Interrupted, text);
                self.finish_call(call, result, Observation::by_supervisor(duration_ms), bounds, out);
                After::GoOn
            }
            (CallEnd::OfWorker(_) | CallEnd::OfOneShot(_) | CallEnd::OfServer(_) | CallEnd::Lost(_), _) => {
                After::Rest
            }
        }
    }

    /// Ends a call with its worker's outcome, or holds it until the person has decided on another run.
    fn end_worked(
        &mut self,
        call: CallId,
        ran: Ran<'_>,
        outcome: CallOutcome,
        observed: Observation,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let is_whole = matches!(outcome, CallOutcome::Done(_));
        let reading = Reading {
            bounds,
            standing: ran.standing,
            declined: &self.declined,
            given: self.granted(call, bounds),
        };
        let mut result = reading.result(ran.tool, outcome, ran.pictures);
        if self.slots.is_of_user(call) {
            // Whoever typed the command can change the access and type it again.
            result.offer = None;
        }
        let result = self.with_partial_output(call, result, is_whole);
        self.close_or_hold(call, result, observed, bounds, out);
    }

    fn on_one_shot(
        &mut self,
        call: CallId,
        committing: Committing,
        outcome: Result<CallOutcome, String>,
        duration_ms: u64,
        pictures: Pictures,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let Committing { tool, grant, after, .. } = committing;
        match outcome {
            Ok(outcome) => {
                let standing = bounds.rights.with_grant(&grant);
                let ran = Ran { tool: &tool, standing: &standing, pictures };
                self.end_worked(call, ran, outcome, Observation::by_worker(duration_ms), bounds, out);
            }
            // The path may lead to another file now, so it is not added to the standing rights either.
            Err(reason) if self.slots.had_run(call) => {
                self.leave_not_run_again(call, &reason, after.is_some(), bounds, out);
                return After::GoOn;
            }
            Err(reason) => {
                let result = CallResult::not_done(ToolCallStatus::Failed, reason);
                let result = self.with_partial_output(call, result, false);
                self.finish_call(call, result, Observation::by_supervisor(duration_ms), bounds, out);
            }
        }
        // The new rights come before the calls that follow, which are judged by them and wait for the new worker.
        after.map_or(After::GoOn, After::Change)
    }

    /// Returns the result with the partial output of its command, unless the result has all output (`is_whole`).
    fn with_partial_output(&mut self, call: CallId, mut result: CallResult, is_whole: bool) -> CallResult {
        let prints = self.slots.open(call).is_some_and(Open::prints);
        let progress = self.slots.take_progress(call).filter(|it| !is_whole && !it.output.is_empty());
        if let Some(progress) = progress {
            result.content = with_output(result.content, Some(&progress), prints);
        }
        result
    }

    fn finish_call(
        &mut self,
        call: CallId,
        result: CallResult,
        observed: Observation,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let result = self.fitted(result, bounds);
        self.close_as(call, result, observed, bounds, out);
    }

    /// Closes a call with a result that the supervisor made.
    pub(super) fn close_at_once(
        &mut self,
        call: CallId,
        result: CallResult,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        self.close_after(call, result, 0, bounds, out);
    }

    /// Closes a call with a result that the supervisor made, and logs that the call took `duration_ms`.
    fn close_after(
        &mut self,
        call: CallId,
        result: CallResult,
        duration_ms: u64,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let result = self.fitted(result, bounds);
        self.close_as(call, result, Observation::by_supervisor(duration_ms), bounds, out);
    }

    fn close_as(
        &mut self,
        call: CallId,
        result: CallResult,
        observed: Observation,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let result = self.slots.remarked(call, result);
        let mut result = self.beside.joined(result);
        log_denials(call, &mut result, out);
        if let Some(tool_use) = self.slots.unclosed(call).cloned() {
            self.note_changes(&tool_use, &result, bounds);
            self.log_finished(call, &tool_use, &result, observed, out);
        }
        self.slots.close(call, result, observed.duration_ms);
        self.hosts.end_call(call, self.slots.running_command().is_none(), out);
        self.forms.end_call(call, out);
    }

    /// Records the files that a file tool changed, for the current step of the plan.
    fn note_changes(&mut self, tool_use: &ToolUse, result: &CallResult, bounds: Bounds<'_>) {
        let Some(execution) = &mut self.execution else { return };
        if result.status == ToolCallStatus::Completed
            && let Ok(invocation) = tool_use.read(&self.charter.tools)
            && invocation.kind() == ToolKind::Edit
        {
            let places = invocation.locations(bounds.rights.seen().project());
            execution.note_changed(places.into_iter().map(|place| place.path));
        }
    }

    fn log_finished(
        &mut self,
        call: CallId,
        tool_use: &ToolUse,
        result: &CallResult,
        observed: Observation,
        out: &mut Outbox,
    ) {
        let diffs = if result.status == ToolCallStatus::Completed {
            self.diffs(call, result)
        } else {
            Ok(Vec::new())
        };
        let kind = EventKind::ToolCallFinished {
            call,
            tool_use: tool_use.id.clone(),
            status: result.status,
            content: result.content.clone(),
            explanation_bytes: result.explanation_bytes(),
            duration_ms: observed.duration_ms,
            diffs_left_out: diffs.is_err(),
            diffs: diffs.unwrap_or_default(),
            images: result.images.clone(),
        };
        out.log_seen_by(observed.by, kind);
    }

    /// Returns the file changes of a completed call. An `Err` is the reason why they are left out.
    fn diffs(&self, call: CallId, result: &CallResult) -> Result<Vec<FileDiff>, LeftOut> {
        if let Some(Open::Committing(committing)) = self.slots.open(call)
            && let Approved::Patch(patch) = &*committing.effect
        {
            return diffs_of(patch);
        }
        result.diffs.clone()
    }

    /// Takes the results of closed calls in order, each with the model's id of its call; `None` for a call of the
    /// person.
    pub(in crate::core) fn take_results(&mut self) -> Vec<(Option<ToolUseId>, CallResult)> {
        self.slots.take_results()
    }

    pub(in crate::core) fn first_result(&self) -> Option<&CallResult> {
        self.slots.results().next()
    }

    /// Returns the result, shortened so that later results and a summary still fit into the context.
    fn fitted(&self, mut result: CallResult, bounds: Bounds<'_>) -> CallResult {
        let taken = self.slots.results().map(|result| tokens(&result.content)).sum();
        let most = Budget::share(bounds.room.saturating_sub(taken), self.slots.count_unclosed()) - AROUND;
        if tokens(&result.content) > most {
            let rest = result.rest.as_deref().unwrap_or(ELSE);
            let note = format!("\n(cut, since the context has no room for more; {rest})");
            let kept = bytes(&result.content, most.saturating_sub(tokens(&note)));
            result.content = format!("{}{note}", ends(&result.content, kept));
        }
        result
    }

    /// Returns the access that a call had beyond the standing rights, on which an offer of another run builds; `None` if
    /// the person cannot be asked about another run.
    fn granted(&self, call: CallId, bounds: Bounds<'_>) -> Option<Grant> {
        let approvals = &self.charter.approvals;
        let may_ask = approvals.answerer && approvals.offers && !self.slots.is_part(call);
        if !may_ask || !bounds.rights.asks() {
            return None;
        }
        match self.slots.open(call)? {
            Open::Serving(_) => Some(Grant::default()),
            // An approval for the session changes the standing rights, and the model can try again under the new ones.
            Open::Committing(committing) if committing.after.is_none() => Some(committing.grant.clone()),
            _ => None,
        }
    }

    /// Closes a call with the result of its run, or holds it if another run can be offered.
    fn close_or_hold(
        &mut self,
        call: CallId,
        mut result: CallResult,
        observed: Observation,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let Some(offer) = result.offer.take() else {
            return self.finish_call(call, result, observed, bounds, out);
        };
        if let Some(path) = offer.place.clone() {
            out.push(Effect::Locate { call, path });
        }
        self.slots.hold(call, offer, FirstRun { result, observed });
        self.hosts.end_call(call, self.slots.running_command().is_none(), out);
    }

    /// Closes a call that the person denied: with the result of its first run if it had one, else with `otherwise`.
    pub(super) fn close_denied(
        &mut self,
        call: CallId,
        message: Option<&str>,
        otherwise: CallResult,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        if !self.slots.had_run(call) {
            return self.close_at_once(call, otherwise, bounds, out);
        }
        let words = message.map_or_else(|| LEFT.to_owned(), |message| format!("{LEFT} They say: {message}"));
        self.leave(call, Some(&words), bounds, out);
    }

    /// Records a denial that the person did not lift.
    pub(super) fn decline(&mut self, subject: &Subject, grant: &Grant) {
        if let Some(denial) = subject.denied() {
            self.declined.add(denial, grant);
        }
    }

    /// Closes a call on which nobody decided: with the result of its first run if it had one, else with `otherwise`.
    pub(super) fn close_undecided(
        &mut self,
        call: CallId,
        otherwise: CallResult,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        if self.slots.had_run(call) {
            self.leave(call, None, bounds, out);
        } else {
            self.close_at_once(call, otherwise, bounds, out);
        }
    }

    /// Closes a call whose second run the person allowed, but which did not happen.
    fn leave_not_run_again(
        &mut self,
        call: CallId,
        reason: &str,
        for_session: bool,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        if for_session {
            let message = "the command was not run again: the access approved for the session was not added";
            out.notice(NoticeCode::NotAdded, message);
        }
        let words =
            format!("(The user allowed the command to run again with the access that it lacked: {reason}.)");
        self.leave(call, Some(&words), bounds, out);
    }

    /// Closes every held call with the result of its first run.
    pub(super) fn leave_held(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        let held: Vec<_> = self.slots.all_held().map(|(call, _)| call).collect();
        for call in held {
            self.leave(call, None, bounds, out);
        }
    }

    /// Closes a call with the result of its first run. `words` are added before the explanation of its denials.
    pub(super) fn leave(&mut self, call: CallId, words: Option<&str>, bounds: Bounds<'_>, out: &mut Outbox) {
        let Some(FirstRun { mut result, observed }) = self.slots.take_first_run(call) else { return };
        if let Some(words) = words {
            let end = result.explanation.clone().unwrap_or_default();
            let said = result.content.strip_suffix(end.as_str()).unwrap_or(&result.content);
            let explanation = format!("\n{words}{end}");
            result.content = format!("{said}{explanation}");
            // Front ends leave the explanation out, because the person knows the denial and the own answer.
            result.explanation = Some(explanation);
        }
        self.finish_call(call, result, observed, bounds, out);
    }

    /// Ends every call when the turn ends, so that each call has a result before the next request to the model.
    pub(in crate::core) fn interrupt(&mut self, reason: EndReason, bounds: Bounds<'_>, out: &mut Outbox) {
        let why = Interruption::of(reason);
        self.withdraw("the turn was ended", &why.sentence(None), bounds, out);
        self.end_open(why, |_| true, bounds, out);
        self.close_waiting(&why.sentence(None), bounds, out);
    }

    /// Ends open calls and requests after a change of access, because the requests show the access before the change.
    pub(in crate::core) fn interrupt_for_rights(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        self.withdraw("the access was changed", &POLICY_CHANGED.sentence(None), bounds, out);
        // A sub-agent goes on: it has its own worker, and loses the rights that its parent loses.
        self.end_open(POLICY_CHANGED, |open| !matches!(open, Open::Delegated), bounds, out);
    }

    /// Withdraws requests after a change of the mode.
    pub(in crate::core) fn interrupt_for_mode(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        self.withdraw("the approval mode was changed", MODE_CHANGED, bounds, out);
    }

    /// Ends open calls with approved access that the person withdraws. Returns true if there were any.
    pub(in crate::core) fn withdraw_approved(
        &mut self,
        taken: &Withdrawal,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> bool {
        self.hosts.forget_allowed();
        let Withdrawal { bound, nothing, .. } = taken;
        let why = match bound {
            _ if *nothing => NOTHING_APPROVED,
            Network::Off => NETWORK_OFF,
            Network::Hosts(_) | Network::On => NETWORK_NARROWED,
        };
        let is_taken = |open: &Open| match open {
            Open::Committing(committing) => *nothing || !bound.covers(&committing.grant.net),
            Open::Served(ServedCall::External(call)) => {
                *nothing || call.guest.as_ref().is_some_and(|guest| !bound.covers(&guest.rights.net))
            }
            Open::Served(ServedCall::Fetch(fetch)) => !bound.covers(&Network::Hosts(fetch.hosts.clone())),
            Open::Serving(_)
            | Open::Preparing(_)
            | Open::Served(ServedCall::Supervisor(_))
            | Open::Delegated
            | Open::WritingPlan(_)
            | Open::Accepting(_)
            | Open::Looking(_) => false,
        };
        self.end_open(why, is_taken, bounds, out)
    }

    /// Ends the open calls for which `ends` is true. Returns true if there were any.
    pub(super) fn end_open(
        &mut self,
        why: Interruption,
        ends: impl Fn(&Open) -> bool,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> bool {
        let open = self.slots.all_open().into_iter();
        let open = open.filter_map(|call| Some((call, self.slots.open(call)?.clone())));
        let ended: Vec<_> = open.filter(|(_, open)| ends(open)).collect();
        for (call, open) in &ended {
            out.push(Effect::CancelCall(*call));
            if matches!(open, Open::Committing(committing) if committing.after.is_some()) {
                out.notice(
                    NoticeCode::NotAdded,
                    "the call was ended: the access approved for the session was not added",
                );
            }
            let progress = self.slots.take_progress(*call);
            let text = cut_short(open, self.slots.is_of_user(*call), why, progress.as_ref());
            let duration_ms = progress.map_or(0, |progress| progress.duration_ms);
            let result = CallResult::not_done(ToolCallStatus::Interrupted, text);
            self.close_after(*call, result, duration_ms, bounds, out);
        }
        !ended.is_empty()
    }

    /// Closes calls that have not begun. The log gets the start and the end of each.
    fn close_waiting(&mut self, text: &str, bounds: Bounds<'_>, out: &mut Outbox) {
        for call in self.slots.all_waiting() {
            if let Some(tool_use) = self.slots.tool_use(call).cloned() {
                self.log_started(call, &tool_use, bounds, out);
            }
            self.close_at_once(call, CallResult::not_done(ToolCallStatus::Interrupted, text), bounds, out);
        }
    }
}

/// Returns the result of a call without a worker, and the component that observed its end.
fn served_result(
    served: &ServedCall,
    outcome: ServedOutcome,
    pictures: Pictures,
) -> (CallResult, ObservedBy) {
    let (by, in_part) = match served {
        ServedCall::Supervisor(_) | ServedCall::Fetch(_) => (ObservedBy::Supervisor, SERVED_IN_PART),
        ServedCall::External(_) => (ObservedBy::Server, IN_PART),
    };
    match outcome {
        ServedOutcome::Answered(text) => (answered(text), by),
        // Only the pictures that fit into the conversation are shown.
        ServedOutcome::Pictured(text, _) => {
            let Pictures { shown, left_out } = pictures;
            let text = left_out.into_iter().fold(text, |text, cause| format!("{text}\n({cause})"));
            (CallResult { images: shown, ..answered(text) }, by)
        }
        ServedOutcome::Failed(text) => (CallResult::not_done(ToolCallStatus::Failed, text), by),
        ServedOutcome::Unserved(why) => {
            let text = format!("the call was not carried out: {why}");
            (CallResult::not_done(ToolCallStatus::Failed, text), ObservedBy::Supervisor)
        }
        ServedOutcome::Late(after) => {
            let text = format!("interrupted: the tool did not answer within {after:?}; {in_part}");
            (CallResult::not_done(ToolCallStatus::Interrupted, text), ObservedBy::Supervisor)
        }
    }
}

fn answered(text: String) -> CallResult {
    CallResult::answered(if text.is_empty() { EMPTY.to_owned() } else { text })
}
