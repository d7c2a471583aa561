//! From a tool use to a call that begins: what it means, what the gate says of it, and who gets it.

use gate::approval::{AgentSpawn, Subject};
use gate::modes::{Position, Rank, permits};
use gate::tools::{ExternalCall, Invocation, PlanCall, Rendered, ServedCall, SpawnAgent, TaskList};
use gate::{Ask, ChildRights, DeniedPart, SpawnVerdict, Verdict};
use ipc::denial::Denial;
use ipc::id::CallId;
use ipc::rights::Grant;
use ipc::tool::ToolCall;
use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::{DecidedBy, EventKind, ObservedBy, TaskState, ToolCallStatus};

use super::approvals::Case;
use super::call::{CallResult, ToolUse};
use super::calls::Open;
use super::{Agent, Effect};

/// What becomes of a call before any worker hears of it.
enum Begin {
    /// It makes no sense.
    Answered(CallResult),
    /// It does.
    Judged(Invocation, Verdict),
    /// It is for a sub-agent, which may start.
    Delegated(SpawnAgent, ChildRights),
    /// It is for a sub-agent, whose rights somebody has to approve.
    Asked(SpawnAgent, ChildRights, Ask),
    /// It is about a plan.
    Planned(PlanCall),
    /// It is about the list of tasks.
    Listed(TaskList),
}

impl Begin {
    /// Whether it has to be the only call that has begun and is not closed.
    const fn is_alone(&self) -> bool {
        matches!(
            self,
            Self::Judged(_, Verdict::Prepare | Verdict::Ask(_)) | Self::Asked(..) | Self::Planned(_)
        )
    }
}

impl Agent {
    /// Starts the calls of a complete reply, in their order.
    pub(super) fn begin_calls(&mut self, tool_uses: Vec<ToolUse>) {
        self.turn.work();
        for tool_use in tool_uses {
            let call = self.reserve_call();
            self.calls.push(call, tool_use);
        }
        self.go_on();
    }

    /// Begins the calls that may begin now.
    pub(super) fn advance(&mut self) {
        self.ask_gathered();
        self.carry_out_next();
        self.ask_again();
        self.add_allowed_hosts();
        while let Some((call, tool_use)) = self.calls.next() {
            let begin = self.judge(call, &tool_use);
            if begin.is_alone() && self.calls.any_begun() {
                return;
            }
            self.log_started(call, &tool_use);
            self.begin_call(call, begin);
        }
    }

    /// The log comes first: what is not written down does not run.
    pub(super) fn log_started(&mut self, call: CallId, tool_use: &ToolUse) {
        if self.calls.note_logged(call) {
            return;
        }
        let invocation = tool_use.read(&self.config.tools).ok();
        let project = &self.seen.project;
        self.out.log(EventKind::ToolCallStarted {
            call,
            tool_use: tool_use.id.clone(),
            name: tool_use.name.clone(),
            kind: invocation.as_ref().map(Invocation::kind).unwrap_or_default(),
            locations: invocation.map(|invocation| invocation.locations(project)).unwrap_or_default(),
            input: tool_use.written(),
        });
    }

    fn begin_call(&mut self, call: CallId, begin: Begin) {
        match begin {
            Begin::Answered(result) => self.close_at_once(call, result),
            Begin::Planned(PlanCall::Write { markdown }) => self.write_plan(call, markdown),
            Begin::Planned(PlanCall::Update(update)) => self.update_step(call, update),
            Begin::Listed(list) => {
                let done = list.0.iter().filter(|task| task.state == TaskState::Done).count();
                let told = format!("The list has {} tasks, {done} of them done.", list.0.len());
                self.conversation.update_tasks(call, list.0, &mut self.out);
                self.close_at_once(call, CallResult::answered(told));
            }
            Begin::Delegated(spawn, child) => self.delegate(call, spawn, child),
            Begin::Asked(spawn, child, ask) => self.ask_to_delegate(call, AgentSpawn::new(spawn, child), ask),
            Begin::Judged(invocation, Verdict::Deny(denial)) => {
                let remedy = self.remedy_for(&invocation);
                let said =
                    Rendered::failure(format!("the call was not carried out{}", remedy.unwrap_or_default()));
                let result = Self::denied(vec![denial], said, &self.seen, ObservedBy::Supervisor);
                self.close_at_once(call, result);
            }
            Begin::Judged(Invocation::Worker(tool), Verdict::Run) => self.dispatch(call, tool),
            Begin::Judged(Invocation::Worker(tool), Verdict::Prepare) => {
                self.out.push(Effect::Prepare { call, tool: tool.clone() });
                self.calls.open_as(call, Open::Preparing(tool));
            }
            Begin::Judged(Invocation::Worker(tool), Verdict::Ask(ask)) => {
                self.ask_for_command(call, tool, ask);
            }
            Begin::Judged(Invocation::Supervisor(own), Verdict::Run) => {
                self.serve(call, ServedCall::Supervisor(own));
            }
            Begin::Judged(Invocation::External(external), Verdict::Run) => {
                if self.seen.runs_by_settings(&external) {
                    self.log_answer(call, None, ReviewDecision::Approved, DecidedBy::Configuration, None);
                }
                self.serve(call, ServedCall::External(external));
            }
            Begin::Judged(Invocation::External(external), Verdict::Ask(ask)) => {
                self.ask(Case { call, ask, subject: Subject::External(external) });
            }
            Begin::Judged(Invocation::Fetch(fetch), Verdict::Run) => {
                let permitted = self.seen.permit(fetch, None);
                self.serve(call, ServedCall::Fetch(permitted));
            }
            Begin::Judged(Invocation::Fetch(fetch), Verdict::Ask(ask)) => {
                self.ask(Case { call, ask, subject: Subject::Fetch(fetch) });
            }
            // What no line above names is carried out by nobody.
            Begin::Judged(
                Invocation::Supervisor(_)
                | Invocation::External(_)
                | Invocation::Fetch(_)
                | Invocation::Agent(_)
                | Invocation::Plan(_)
                | Invocation::Tasks(_),
                _,
            ) => {
                let text = "the call was not carried out: it can be neither prepared nor approved";
                self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text));
            }
        }
    }

    pub(super) fn dispatch(&mut self, call: CallId, tool: ToolCall) {
        self.out.push(Effect::Dispatch { call, tool: tool.clone() });
        self.calls.open_as(call, Open::Serving(tool));
    }

    pub(super) fn not_carried_out(&self, denial: Denial) -> CallResult {
        let said = Rendered::failure("the call was not carried out");
        Self::denied(vec![denial], said, &self.seen, ObservedBy::Supervisor)
    }

    /// Returns the remedy for a denied call of a server, where nobody is asked.
    fn remedy_for(&self, invocation: &Invocation) -> Option<String> {
        let Invocation::External(external) = invocation else { return None };
        let part = match (&self.config.planning, &self.config.execution) {
            (_, Some(_)) => DeniedPart::Executor,
            (Some(_), None) => DeniedPart::Planner,
            (None, None) if self.config.id.is_top_level() => DeniedPart::First,
            (None, None) => DeniedPart::SubAgent,
        };
        self.seen.external_remedy(external, part)
    }

    fn judge(&self, call: CallId, tool_use: &ToolUse) -> Begin {
        match tool_use.read(&self.config.tools) {
            Ok(Invocation::Plan(plan)) => Begin::Planned(plan),
            Ok(Invocation::Tasks(list)) => Begin::Listed(list),
            Ok(_) if self.is_stopped() => {
                let text =
                    "the call was not carried out: a step failed, and execution has ended; end your turn";
                Begin::Answered(CallResult::not_done(ToolCallStatus::Failed, text))
            }
            // The person wants to be asked for every command, and a plan's approval does not change that.
            Ok(invocation) if self.calls.is_part(call) && self.config.approvals.confirm_shell => {
                let ask = Ask { kind: AskKind::Exec, grant: Grant::default() };
                Begin::Judged(invocation, Verdict::Ask(ask))
            }
            Ok(Invocation::External(external)) if self.plan_lists(&external) => {
                Begin::Judged(Invocation::External(external), Verdict::Run)
            }
            Ok(Invocation::Agent(spawn)) => self.judge_spawn(spawn),
            Ok(invocation) => {
                let verdict = self.seen.judge(&invocation, self.position());
                Begin::Judged(invocation, verdict)
            }
            Err(error) => Begin::Answered(CallResult::not_done(ToolCallStatus::Failed, error.to_string())),
        }
    }

    /// True if the agent executes a plan that lists the tool of a call.
    fn plan_lists(&self, external: &ExternalCall) -> bool {
        self.config.execution.as_ref().is_some_and(|execution| execution.lists(external))
    }

    fn judge_spawn(&self, spawn: SpawnAgent) -> Begin {
        match self.config.standing.judge_spawn(&spawn, self.position()) {
            SpawnVerdict::Run(child) => Begin::Delegated(spawn, child),
            SpawnVerdict::Ask(child, ask) => Begin::Asked(spawn, child, ask),
            SpawnVerdict::Deny(denial) => Begin::Judged(Invocation::Agent(spawn), Verdict::Deny(denial)),
            SpawnVerdict::Misfit(why) => {
                let text = format!("`spawn_agent` was not run: {why}");
                Begin::Answered(CallResult::not_done(ToolCallStatus::Failed, text))
            }
        }
    }

    /// True if somebody may be asked.
    pub(super) fn asks(&self) -> bool {
        permits(self.position(), self.seen.mode).asks()
    }

    pub(super) fn position(&self) -> Position {
        let rank = if self.config.id.is_top_level() { Rank::Top } else { Rank::Sub };
        Position { activity: self.config.activity, rank }
    }
}
