//! Results of calls: each is closed once, and all of them make one message.

use gate::tools::{LeftOut, diffs_of};
use ipc::effect::Effect;
use ipc::id::CallId;
use ipc::message::CallOutcome;
use ipc::tool::ToolOutput;
use protocol::event::{EventKind, FileDiff, ObservedBy, ToolCallStatus};

use super::call::{CallResult, ToolUse};
use super::calls::Open;
use super::conversation::quoted;
use super::end::Ending;
use super::interrupt::{after, with_output};
use super::turn::{Course, Phase};
use super::{Agent, EndReason};
use crate::conversation::UserBlock;

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

impl Agent {
    pub(super) fn on_call_finished(&mut self, call: CallId, outcome: CallOutcome, duration_ms: u64) {
        let tool = match self.calls.open(call) {
            Some(Open::Serving(tool) | Open::Preparing(tool)) => tool.clone(),
            Some(
                Open::Committing(_)
                | Open::Served(_)
                | Open::Delegated
                | Open::WritingPlan(_)
                | Open::Accepting(_)
                | Open::Looking(_),
            )
            | None => return,
        };
        if let CallOutcome::Done(ToolOutput::Command(result)) = &outcome {
            self.end_hosts_of_process(result.process);
        }
        let standing = self.seen.clone();
        let is_whole = matches!(outcome, CallOutcome::Done(_));
        let result = self.result_of(call, &tool, outcome, &standing);
        let result = self.with_partial_output(call, result, is_whole);
        self.close_or_hold(call, result, Observation::by_worker(duration_ms));
        self.go_on();
    }

    pub(super) fn on_call_lost(&mut self, call: CallId, reason: &str) {
        let Some(prints) = self.calls.open(call).map(Open::prints) else { return };
        let progress = self.calls.take_progress(call);
        let text = format!(
            "the call was lost{}: {reason}. It may have been carried out in part: look before you repeat it",
            after(progress.as_ref())
        );
        let text = with_output(text, progress.as_ref(), prints);
        let duration_ms = progress.map_or(0, |progress| progress.duration_ms);
        let result = CallResult::not_done(ToolCallStatus::Interrupted, text);
        self.close_call(call, result, Observation::by_supervisor(duration_ms));
    }

    /// A result without the output of its command, and that output as far as it came: its end is nobody's to tell. A result that is whole has all
    /// of it, whatever was told of it on the way.
    pub(super) fn with_partial_output(
        &mut self,
        call: CallId,
        mut result: CallResult,
        is_whole: bool,
    ) -> CallResult {
        let prints = self.calls.open(call).is_some_and(Open::prints);
        let progress = self.calls.take_progress(call).filter(|it| !is_whole && !it.output.is_empty());
        if let Some(progress) = progress {
            result.content = with_output(result.content, Some(&progress), prints);
        }
        result
    }

    /// What the supervisor saw after a call goes with its result.
    pub(super) fn on_remark(&mut self, call: CallId, text: String) {
        self.calls.remark(call, text);
    }

    fn close_call(&mut self, call: CallId, result: CallResult, observed: Observation) {
        self.finish_call(call, result, observed);
        self.go_on();
    }

    pub(super) fn finish_call(&mut self, call: CallId, result: CallResult, observed: Observation) {
        let result = self.fitted(result);
        self.close_as(call, result, observed);
    }

    /// Gives a call its result without the word of whoever serves it.
    pub(super) fn close_at_once(&mut self, call: CallId, result: CallResult) {
        self.close_after(call, result, 0);
    }

    /// The same of a call that was served for so many milliseconds.
    pub(super) fn close_after(&mut self, call: CallId, result: CallResult, duration_ms: u64) {
        let result = self.fitted(result);
        self.close_as(call, result, Observation::by_supervisor(duration_ms));
    }

    fn close_as(&mut self, call: CallId, result: CallResult, observed: Observation) {
        let result = self.calls.remarked(call, result);
        let mut result = self.with_news(result);
        self.log_denials(call, &mut result);
        if let Some(tool_use) = self.calls.unclosed(call).cloned() {
            self.note_changes(&tool_use, &result);
            self.log_finished(call, &tool_use, &result, observed);
        }
        self.calls.close(call, result, observed.duration_ms);
        self.end_hosts_of(call);
        self.end_forms_of(call);
    }

    fn note_changes(&mut self, tool_use: &ToolUse, result: &CallResult) {
        if result.status != ToolCallStatus::Completed || self.config.execution.is_none() {
            return;
        }
        if let Ok(invocation) = tool_use.read(&self.config.tools) {
            let places = invocation.locations(&self.seen.project).into_iter().map(|place| place.path);
            self.note_changed(invocation.kind(), places.collect());
        }
    }

    /// Where the agent waits for calls: begins those that may begin; when all are closed and no worker is on its way that
    /// replaces theirs, their results go to the model.
    pub(super) fn go_on(&mut self) {
        if self.turn.phase() != Phase::Working {
            return;
        }
        self.advance();
        self.conclude_step();
        if self.calls.are_closed() && !self.replacement.is_awaited() {
            let is_user = self.calls.are_of_user();
            if is_user
                && !self.turn.is_own_command()
                && let Some(result) = self.calls.results().next()
            {
                self.turn.conclude_plan(result);
            }
            let results = self.take_results();
            self.conversation.answer_calls(results);
            if !is_user {
                match self.turn.end_step() {
                    Course::GoesOn => {}
                    Course::Told(text) => self.conversation.note(text),
                    Course::Ends(message) => {
                        return self.finish(Ending::because(EndReason::GaveUp, message));
                    }
                }
            }
            // The model is asked nothing about a call of the user's, unless it has a plan to revise.
            if is_user && !self.turn.must_keep_steps() {
                return self.end_turn();
            }
            self.begin_step();
        }
    }

    /// All results, in the order of the calls, for one message (WIRE R4).
    pub(super) fn take_results(&mut self) -> Vec<UserBlock> {
        let mut blocks = Vec::new();
        for (tool_use, result) in std::mem::take(&mut self.calls).into_results() {
            self.turn.note_result(&result);
            let is_own = tool_use.is_none() && self.turn.is_own_command();
            blocks.push(if is_own { quoted(&result.content) } else { result.into_block(tool_use) });
        }
        blocks
    }

    fn log_finished(&mut self, call: CallId, tool_use: &ToolUse, result: &CallResult, observed: Observation) {
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
        self.out.log_seen_by(observed.by, kind);
    }

    /// The changes that a completed call made: by the bytes that were approved, or else as its worker tells them.
    fn diffs(&self, call: CallId, result: &CallResult) -> Result<Vec<FileDiff>, LeftOut> {
        if let Some(Open::Committing(committing)) = self.calls.open(call)
            && let Effect::Patch(patch) = &*committing.effect
        {
            return diffs_of(patch);
        }
        result.diffs.clone()
    }
}
