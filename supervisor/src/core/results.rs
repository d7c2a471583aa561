//! The worker's side of the loop: calls go out, results come back, and all of them make one message.

use ipc::denial::{Denial, Layer};
use ipc::event::{EventKind, Observer, ToolCallStatus};
use ipc::id::{CallId, ToolUseId};
use ipc::message::Outcome;
use ipc::tool::{ToolCall, ToolError, ToolErrorKind, ToolOutput};
use serde_json::value::RawValue;

use super::agent::State;
use super::calls::{CallResult, Calls};
use super::reply::ToolUse;
use super::{Agent, Effect, EndReason};
use crate::gate::{Verdict, declared_too_little};
use crate::provider::UserBlock;
use crate::tools::{Invocation, Rendered, ToolUseError, render};

/// What the model is told when its own declaration was the reason.
const READ_HINT: &str = "\n(This command ran with access \"read\": it may write nothing but $TMPDIR and has no network. \
    If it has to do more, leave access out.)";

/// What becomes of a call before any worker hears of it.
enum Sent {
    Dispatched(ToolCall),
    Answered(CallResult),
}

impl Agent {
    /// Starts the calls of a complete reply, in their order.
    pub(super) fn begin_calls(&mut self, calls: Vec<ToolUse>) {
        let mut open = Calls::default();
        for call in calls {
            self.begin_call(&mut open, call);
        }
        self.wait_for(open);
    }

    fn begin_call(&mut self, calls: &mut Calls, tool_use: ToolUse) {
        let call = self.reserve_call();
        // The log comes first: what is not written down does not run.
        self.log(EventKind::ToolCallStarted {
            call,
            tool_use: tool_use.id.clone(),
            name: tool_use.name.clone(),
            input: written(&tool_use),
        });
        match self.admit(call, &tool_use) {
            Sent::Dispatched(tool) => {
                self.effects.push(Effect::Dispatch { call, tool: tool.clone() });
                calls.push_open(call, tool_use.id, tool);
            }
            Sent::Answered(result) => {
                self.log_finished(call, &tool_use.id, &result, (0, Observer::Supervisor));
                calls.push_closed(call, tool_use.id, result);
            }
        }
    }

    fn admit(&mut self, call: CallId, tool_use: &ToolUse) -> Sent {
        let invocation = match self.read(tool_use) {
            Ok(invocation) => invocation,
            Err(error) => {
                return Sent::Answered(CallResult::not_done(ToolCallStatus::Failed, error.to_string()));
            }
        };
        match self.seen.judge(&invocation) {
            Verdict::Run => Sent::Dispatched(invocation.call),
            Verdict::Deny(denial) => {
                let said = Rendered::failure("the call was not carried out");
                Sent::Answered(self.denied(call, denial, said, Observer::Supervisor))
            }
        }
    }

    fn read(&self, tool_use: &ToolUse) -> Result<Invocation, ToolUseError> {
        match &tool_use.input {
            Ok(input) => self.config.tools.parse(&tool_use.name, input),
            // The registry knows best what was expected; it cannot accept the empty text.
            Err(reason) => match self.config.tools.parse(&tool_use.name, "") {
                Err(ToolUseError::NotAnObject { tool, arguments, .. }) => {
                    Err(ToolUseError::NotAnObject { tool, reason: reason.clone(), arguments })
                }
                other => other,
            },
        }
    }

    pub(super) fn on_call_finished(&mut self, call: CallId, outcome: Outcome, duration_ms: u64) {
        let State::Working(calls) = &self.state else {
            return;
        };
        let Some((_, tool)) = calls.open(call) else { return };
        let tool = tool.clone();
        let result = self.result_of(call, &tool, outcome);
        self.close_call(call, result, (duration_ms, Observer::Worker));
    }

    pub(super) fn on_call_lost(&mut self, call: CallId, reason: &str) {
        let State::Working(calls) = &self.state else {
            return;
        };
        if calls.open(call).is_none() {
            return;
        }
        let text = format!(
            "the call was lost: {reason}. It may have been carried out in part: look before you repeat it"
        );
        let result = CallResult::not_done(ToolCallStatus::Interrupted, text);
        self.close_call(call, result, (0, Observer::Supervisor));
    }

    /// What the supervisor saw after a call goes with its result.
    pub(super) fn on_remark(&mut self, call: CallId, text: String) {
        if let State::Working(calls) = &mut self.state {
            calls.remark(call, text);
        }
    }

    fn close_call(&mut self, call: CallId, result: CallResult, seen: (u64, Observer)) {
        let State::Working(mut calls) = std::mem::replace(&mut self.state, State::Resting) else {
            return;
        };
        let result = calls.remarked(call, result);
        if let Some((tool_use, _)) = calls.open(call) {
            self.log_finished(call, tool_use, &result, seen);
        }
        calls.close(call, result);
        self.wait_for(calls);
    }

    /// Waits for open calls, and for the worker that replaces theirs; then the results go to the model.
    pub(super) fn wait_for(&mut self, calls: Calls) {
        if !calls.all_open().is_empty() || self.replacement.is_awaited() {
            self.state = State::Working(calls);
            return;
        }
        let results = self.results(calls);
        self.say_to_model(results);
        self.begin_step();
    }

    /// All results, in the order of the calls, for one message (WIRE R4).
    fn results(&mut self, calls: Calls) -> Vec<UserBlock> {
        let mut blocks = Vec::new();
        for (tool_use, result) in calls.into_results() {
            self.remember_denial(&result);
            blocks.push(result.into_block(tool_use));
        }
        blocks
    }

    fn remember_denial(&mut self, result: &CallResult) {
        if let Some(denial) = &result.denial {
            self.run.denial = Some(denial.clone());
        } else if result.status == ToolCallStatus::Completed {
            self.run.denial = None;
        }
    }

    /// Every open call gets its result before anything else is sent (WIRE R4).
    pub(super) fn interrupt_calls(&mut self, mut calls: Calls, reason: EndReason) {
        let text = match reason {
            EndReason::TimeLimit => "interrupted: the time of the run is spent; the call was ended",
            EndReason::Internal => "interrupted: the run cannot go on; the call was ended",
            _ => "interrupted by the user; the call was ended",
        };
        self.close_open(&mut calls, text);
        // The results alone: what the user has said meanwhile waits for a turn that answers it.
        let results = self.results(calls);
        self.history.push_user(results);
    }

    /// Ends every open call, with this for a result.
    pub(super) fn close_open(&mut self, calls: &mut Calls, text: &str) {
        for call in calls.all_open() {
            self.effects.push(Effect::CancelCall(call));
            let result = CallResult::not_done(ToolCallStatus::Interrupted, text);
            if let Some((tool_use, _)) = calls.open(call) {
                self.log_finished(call, tool_use, &result, (0, Observer::Supervisor));
            }
            calls.close(call, result);
        }
    }

    fn result_of(&mut self, call: CallId, tool: &ToolCall, outcome: Outcome) -> CallResult {
        match outcome {
            Outcome::Done(output) => self.result_of_output(call, tool, &output),
            Outcome::Failed(error) => self.result_of_error(call, &error),
            Outcome::Cancelled => CallResult::not_done(
                ToolCallStatus::Interrupted,
                "the call was interrupted before it was done",
            ),
            // Nothing was asked to be prepared: a worker that says so anyway has done nothing.
            Outcome::Prepared => CallResult::not_done(
                ToolCallStatus::Failed,
                "the worker gave an answer that does not fit the call",
            ),
        }
    }

    fn result_of_output(&mut self, call: CallId, tool: &ToolCall, output: &ToolOutput) -> CallResult {
        let mut rendered = render(output);
        if let ToolOutput::Command(result) = output
            && let Some(hint) = self.config.standing.refused_git_config(result)
        {
            rendered.content.push('\n');
            rendered.content.push_str(&hint);
        }
        if let (ToolCall::ShellExec(command), ToolOutput::Command(result)) = (tool, output)
            && let Some(denial) = self.seen.likely(command, result)
        {
            let result = self.denied(call, denial, rendered, Observer::Worker);
            // The command failed; that a denial was the reason is no more than likely.
            return CallResult { status: ToolCallStatus::Failed, ..result };
        }
        let Rendered { mut content, is_error } = rendered;
        if let (ToolCall::ShellExec(command), ToolOutput::Command(result)) = (tool, output)
            && declared_too_little(command, result)
        {
            content.push_str(READ_HINT);
        }
        if let ToolOutput::Command(result) = output
            && let Some(hint) = self.seen.refused_connection(result)
        {
            content.push('\n');
            content.push_str(hint);
        }
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        CallResult { status, content, is_error, denial: None }
    }

    fn result_of_error(&mut self, call: CallId, error: &ToolError) -> CallResult {
        let rendered = Rendered::from(error);
        if let Some(denial) = self.seen.explain(error) {
            let said = match denial.layer {
                // The worker saw the mode of what covers the place, and cannot know it from the place's own.
                Layer::Mask => Rendered::failure("the place is hidden from the sandbox"),
                _ => rendered,
            };
            return self.denied(call, denial, said, Observer::Worker);
        }
        let status = match error.kind {
            ToolErrorKind::Interrupted => ToolCallStatus::Interrupted,
            _ => ToolCallStatus::Failed,
        };
        CallResult::not_done(status, rendered.content)
    }

    /// A denial is an event, and one sentence after what the tool itself said.
    fn denied(&mut self, call: CallId, denial: Denial, said: Rendered, observed_by: Observer) -> CallResult {
        let sentence = denial.to_string();
        let observed_by = if denial.layer == Layer::Policy { Observer::Supervisor } else { observed_by };
        let rights = self.seen.line();
        let content = format!("{}\n{sentence}. Your rights: {rights}", said.content);
        self.log_seen_by(observed_by, EventKind::Denied { call, denial, rights });
        CallResult { status: ToolCallStatus::Denied, content, is_error: true, denial: Some(sentence) }
    }

    fn log_finished(
        &mut self,
        call: CallId,
        tool_use: &ToolUseId,
        result: &CallResult,
        (duration_ms, observed_by): (u64, Observer),
    ) {
        let (tool_use, content) = (tool_use.clone(), result.content.clone());
        let kind =
            EventKind::ToolCallFinished { call, tool_use, status: result.status, content, duration_ms };
        self.log_seen_by(observed_by, kind);
    }
}

/// The arguments exactly as the model wrote them; where they are no JSON, as they are echoed.
fn written(tool_use: &ToolUse) -> Box<RawValue> {
    let exact = tool_use.input.as_ref().ok().and_then(|text| RawValue::from_string(text.clone()).ok());
    exact.unwrap_or_else(|| tool_use.echoed.clone())
}
