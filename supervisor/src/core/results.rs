//! The worker's side of the loop: calls go out, results come back, and all of them make one message.

use ipc::approval::ApprovalMode;
use ipc::denial::{Denial, Layer, Object, Operation};
use ipc::event::{EventKind, Observer, ToolCallStatus};
use ipc::id::{CallId, ToolUseId};
use ipc::image::Image;
use ipc::message::Outcome;
use ipc::rights::Network;
use ipc::tool::{Access, CommandExit, ShellExec, ToolCall, ToolError, ToolErrorKind, ToolOutput};
use serde_json::value::RawValue;

use super::agent::State;
use super::calls::{CallResult, Calls, Open};
use super::fitting::rest;
use super::reply::ToolUse;
use super::{Agent, Effect, EndReason};
use crate::gate::{Activity, Standing, Verdict, declared_too_little};
use crate::provider::UserBlock;
use crate::tools::{Invocation, Rendered, ToolUseError, render};

/// What the model is told when its own declaration was the reason.
const READ_HINT: &str = "\n(This command ran with access \"read\": it may write nothing but $TMPDIR and has no network. \
    If it has to do more, leave access out.)";

/// The same, where it may ask for more.
const READ_HINT_TO_ASK: &str = "\n(This command ran with access \"read\": it may write nothing but $TMPDIR and has no \
    network. If it has to change files, call it again with access \"write\": the user is asked.)";

/// What is true of an approved effect that was ended.
const IN_PART: &str = "it was approved, and may have been carried out in part: look before you repeat it";

/// How a command asks for what it was refused.
const WRITE_HINT: &str =
    "\n(If it has to change files of the project, call it again with access \"write\": the user is asked.)";

/// How a command asks for the network.
const NETWORK_HINT: &str = "\n(If it needs the network, call it again with network true: the user is asked.)";

/// What becomes of a call before any worker hears of it.
enum Begin {
    /// It makes no sense.
    Answered(CallResult),
    /// It does.
    Judged(ToolCall, Verdict),
}

impl Begin {
    /// Whether it has to be the only call that has begun and is not closed.
    const fn is_alone(&self) -> bool {
        matches!(self, Self::Judged(_, Verdict::Prepare | Verdict::Ask(_)))
    }
}

impl Agent {
    /// Starts the calls of a complete reply, in their order.
    pub(super) fn begin_calls(&mut self, tool_uses: Vec<ToolUse>) {
        let mut calls = Calls::default();
        for tool_use in tool_uses {
            calls.push(self.reserve_call(), tool_use);
        }
        self.wait_for(calls);
    }

    /// Begins the calls that may begin now.
    fn advance(&mut self, calls: &mut Calls) {
        while let Some((call, tool_use)) = calls.next() {
            let begin = self.judge(&tool_use);
            if begin.is_alone() && calls.any_begun() {
                return;
            }
            self.log_started(call, &tool_use);
            self.begin_call(calls, call, begin);
        }
    }

    /// The log comes first: what is not written down does not run.
    fn log_started(&mut self, call: CallId, tool_use: &ToolUse) {
        self.log(EventKind::ToolCallStarted {
            call,
            tool_use: tool_use.id.clone(),
            name: tool_use.name.clone(),
            input: written(tool_use),
        });
    }

    fn begin_call(&mut self, calls: &mut Calls, call: CallId, begin: Begin) {
        match begin {
            Begin::Judged(tool, Verdict::Run) => self.dispatch(calls, call, tool),
            Begin::Judged(tool, Verdict::Prepare) => {
                self.effects.push(Effect::Prepare { call, tool: tool.clone() });
                calls.open_as(call, Open::Preparing(tool));
            }
            Begin::Judged(tool, Verdict::Ask(ask)) => self.ask_for_command(calls, call, tool, ask),
            Begin::Judged(_, Verdict::Deny(denial)) => {
                let result = self.not_carried_out(call, denial);
                self.close_at_once(calls, call, result);
            }
            Begin::Answered(result) => self.close_at_once(calls, call, result),
        }
    }

    pub(super) fn dispatch(&mut self, calls: &mut Calls, call: CallId, tool: ToolCall) {
        self.effects.push(Effect::Dispatch { call, tool: tool.clone() });
        calls.open_as(call, Open::Serving(tool));
    }

    pub(super) fn not_carried_out(&mut self, call: CallId, denial: Denial) -> CallResult {
        let said = Rendered::failure("the call was not carried out");
        let standing = self.seen.clone();
        self.denied(call, vec![denial], said, (&standing, Observer::Supervisor))
    }

    /// Gives a call its result without a worker's word.
    pub(super) fn close_at_once(&mut self, calls: &mut Calls, call: CallId, result: CallResult) {
        let result = self.fitted(calls, result);
        let result = self.with_news(result);
        if let Some(tool_use) = calls.unclosed(call) {
            self.log_finished(call, tool_use, &result, (0, Observer::Supervisor));
        }
        calls.close(call, result);
    }

    fn judge(&self, tool_use: &ToolUse) -> Begin {
        match self.read(tool_use) {
            Ok(invocation) => {
                let verdict = self.seen.judge(&invocation, self.asks());
                Begin::Judged(invocation.call, verdict)
            }
            Err(error) => Begin::Answered(CallResult::not_done(ToolCallStatus::Failed, error.to_string())),
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
        let tool = match calls.open(call) {
            Some(open @ (Open::Serving(_) | Open::Preparing(_))) => open.tool().clone(),
            Some(Open::Committing(_)) | None => return,
        };
        let standing = self.seen.clone();
        let result = self.result_of(call, &tool, outcome, &standing);
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
        if let Some(mut calls) = self.take_calls() {
            self.finish_call(&mut calls, call, result, seen);
            self.wait_for(calls);
        }
    }

    pub(super) fn finish_call(
        &mut self,
        calls: &mut Calls,
        call: CallId,
        result: CallResult,
        seen: (u64, Observer),
    ) {
        let result = calls.remarked(call, self.fitted(calls, result));
        let result = self.with_news(result);
        if let Some(tool_use) = calls.unclosed(call) {
            self.log_finished(call, tool_use, &result, seen);
        }
        calls.close(call, result);
    }

    /// Begins what may begin, and waits for open calls and for the worker that replaces theirs; then the results go to the
    /// model.
    pub(super) fn wait_for(&mut self, mut calls: Calls) {
        self.advance(&mut calls);
        if !calls.are_closed() || self.replacement.is_awaited() {
            self.state = State::Working(calls);
            return;
        }
        let results = self.results(calls);
        self.history.push_user(results);
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
            EndReason::Aborted => {
                "interrupted: the user ended the turn; the call was not carried out to its end"
            }
            _ => "interrupted by the user; the call was ended",
        };
        self.close_open(&mut calls, "the turn was ended", text);
        self.close_waiting(&mut calls, text);
        // The results alone: what the user has said meanwhile waits for a turn that answers it.
        let results = self.results(calls);
        self.history.push_user(results);
    }

    /// Ends every call that has begun, with this for a result.
    pub(super) fn close_open(&mut self, calls: &mut Calls, cause: &str, text: &str) {
        self.withdraw(calls, cause, text);
        self.end_open(calls, text, |_| true);
    }

    /// Ends the calls that workers have and that are to end, with this for a result; whether there was one.
    pub(super) fn end_open(&mut self, calls: &mut Calls, text: &str, ends: impl Fn(&Open) -> bool) -> bool {
        let to_end = |call: &CallId| calls.open(*call).is_some_and(&ends);
        let ended: Vec<_> = calls.all_open().into_iter().filter(to_end).collect();
        for call in &ended {
            let call = *call;
            self.effects.push(Effect::CancelCall(call));
            if matches!(calls.open(call), Some(Open::Committing(committing)) if committing.after.is_some()) {
                self.notice(
                    "not_added",
                    "the call was ended: what was approved for the session was not added",
                );
            }
            let result = match calls.open(call) {
                Some(Open::Committing(_)) => format!("{text}; {IN_PART}"),
                _ => text.to_owned(),
            };
            self.close_at_once(calls, call, CallResult::not_done(ToolCallStatus::Interrupted, result));
        }
        !ended.is_empty()
    }

    /// Every call has its start and its end in the log, as the model has its result.
    fn close_waiting(&mut self, calls: &mut Calls, text: &str) {
        for call in calls.all_waiting() {
            if let Some(tool_use) = calls.tool_use(call).cloned() {
                self.log_started(call, &tool_use);
            }
            self.close_at_once(calls, call, CallResult::not_done(ToolCallStatus::Interrupted, text));
        }
    }

    /// What the model is told of an outcome; a refusal is explained by the rights that the call had.
    pub(super) fn result_of(
        &mut self,
        call: CallId,
        tool: &ToolCall,
        outcome: Outcome,
        standing: &Standing,
    ) -> CallResult {
        match outcome {
            Outcome::Done(output) => {
                self.ledger.note(tool, &output, self.seen.project.as_path());
                let rest = rest(tool, &output);
                let result = match output {
                    ToolOutput::Image(image) => self.result_of_picture(image),
                    output => self.result_of_output(call, tool, &output, standing),
                };
                CallResult { rest, ..result }
            }
            Outcome::Failed(error) => self.result_of_error(call, &error, standing),
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

    /// A picture is shown as it is, as long as the conversation has room for it.
    fn result_of_picture(&mut self, image: Image) -> CallResult {
        let content = image.to_string();
        let (images, left_out) = self.history.admit(vec![image]);
        match left_out.first() {
            Some(cause) => CallResult::not_done(ToolCallStatus::Failed, cause),
            None => CallResult {
                status: ToolCallStatus::Completed,
                content,
                is_error: false,
                images,
                denial: None,
                rest: None,
            },
        }
    }

    fn result_of_output(
        &mut self,
        call: CallId,
        tool: &ToolCall,
        output: &ToolOutput,
        standing: &Standing,
    ) -> CallResult {
        let mut rendered = render(output);
        if let ToolOutput::Command(result) = output
            && let Some(hint) = self.config.standing.refused_git_config(result)
        {
            rendered.content.push('\n');
            rendered.content.push_str(&hint);
        }
        if let ToolOutput::Command(result) = output
            && let Some(hint) = standing.refused_connection(result)
        {
            rendered.content.push('\n');
            rendered.content.push_str(hint);
        }
        if let (ToolCall::ShellExec(command), ToolOutput::Command(result)) = (tool, output)
            && let denials = standing.denials(command, result)
            && let Some(first) = denials.first()
        {
            if result.exit == CommandExit::Code(0) {
                rendered.content.push_str(&self.despite_success(command, &denials, standing));
                self.log_denials(call, denials, (standing, Observer::Worker));
            } else {
                rendered.content.push_str(self.asking_hint(command, first));
                let result = self.denied(call, denials, rendered, (standing, Observer::Worker));
                // The command failed; that a denial was the reason is no more than likely.
                return CallResult { status: ToolCallStatus::Failed, ..result };
            }
        }
        let Rendered { mut content, is_error } = rendered;
        if let (ToolCall::ShellExec(command), ToolOutput::Command(result)) = (tool, output)
            && declared_too_little(command, result)
        {
            content.push_str(if self.asks() { READ_HINT_TO_ASK } else { READ_HINT });
        }
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        CallResult { status, content, is_error, images: Vec::new(), denial: None, rest: None }
    }

    fn result_of_error(&mut self, call: CallId, error: &ToolError, standing: &Standing) -> CallResult {
        let rendered = Rendered::from(error);
        if let Some(denial) = standing.explain(error) {
            let said = match denial.layer {
                // The worker saw the mode of what covers the place, and cannot know it from the place's own.
                Layer::Mask => Rendered::failure("the place is hidden from the sandbox"),
                _ => rendered,
            };
            return self.denied(call, vec![denial], said, (standing, Observer::Worker));
        }
        let status = match error.kind {
            ToolErrorKind::Interrupted => ToolCallStatus::Interrupted,
            _ => ToolCallStatus::Failed,
        };
        CallResult::not_done(status, rendered.content)
    }

    /// A denial is an event, and one sentence after what the tool itself said.
    fn denied(
        &mut self,
        call: CallId,
        denials: Vec<Denial>,
        said: Rendered,
        (standing, observed_by): (&Standing, Observer),
    ) -> CallResult {
        let rights = standing.line();
        let sentences: Vec<_> = denials.iter().map(Denial::to_string).collect();
        let content = format!("{}\n{}. Your rights: {rights}", said.content, sentences.join(".\n"));
        self.log_denials(call, denials, (standing, observed_by));
        let (status, denial) = (ToolCallStatus::Denied, sentences.into_iter().next());
        CallResult { status, content, is_error: true, images: Vec::new(), denial, rest: None }
    }

    /// The policy is the supervisor's own, and what the broker refused the broker itself has told it.
    fn log_denials(
        &mut self,
        call: CallId,
        denials: Vec<Denial>,
        (standing, observed_by): (&Standing, Observer),
    ) {
        for denial in denials {
            let seen = denial.layer == Layer::Policy || denial.program.is_some();
            let observed_by = if seen { Observer::Supervisor } else { observed_by };
            let rights = standing.line();
            self.log_seen_by(observed_by, EventKind::Denied { call: Some(call), denial, rights });
        }
    }

    fn log_finished(
        &mut self,
        call: CallId,
        tool_use: &ToolUseId,
        result: &CallResult,
        (duration_ms, observed_by): (u64, Observer),
    ) {
        let (tool_use, content) = (tool_use.clone(), result.content.clone());
        let (status, images) = (result.status, result.images.clone());
        let kind = EventKind::ToolCallFinished { call, tool_use, status, content, duration_ms, images };
        self.log_seen_by(observed_by, kind);
    }
}

impl Agent {
    /// Whether somebody may be asked: never for a sub-agent, nor while a plan is made.
    pub(super) fn asks(&self) -> bool {
        let Self { seen, config, .. } = self;
        seen.mode == ApprovalMode::Ask && config.activity == Activity::Execute && config.id.is_top_level()
    }

    /// Tells a command that exited with 0 of the writes that it was refused: it looks as if they were done. It could do without
    /// everything else, which the log has.
    fn despite_success(&self, command: &ShellExec, denials: &[Denial], standing: &Standing) -> String {
        let writes: Vec<_> = denials.iter().filter(|denial| denial.operation == Operation::Write).collect();
        let Some(first) = writes.first() else { return String::new() };
        let sentences: Vec<_> = writes.iter().map(ToString::to_string).collect();
        let (sentences, rights) = (sentences.join(".\n"), standing.line());
        let hint = self.asking_hint(command, first);
        format!("{hint}\nDespite exit code 0: {sentences}. Your rights: {rights}")
    }

    /// How a command that was refused something could ask for it.
    fn asking_hint(&self, command: &ShellExec, denial: &Denial) -> &'static str {
        let in_project = matches!(&denial.object, Object::Path(path) if path.is_within(&self.seen.project));
        match denial.operation {
            _ if !self.asks() => "",
            Operation::Write if in_project && command.access != Access::Write => WRITE_HINT,
            Operation::Network
                if denial.grant.as_deref() == Some("--net on") && command.network != Some(Network::On) =>
            {
                NETWORK_HINT
            }
            _ => "",
        }
    }
}

/// The arguments exactly as the model wrote them; where they are no JSON, as they are echoed.
fn written(tool_use: &ToolUse) -> Box<RawValue> {
    let exact = tool_use.input.as_ref().ok().and_then(|text| RawValue::from_string(text.clone()).ok());
    exact.unwrap_or_else(|| tool_use.echoed.clone())
}
