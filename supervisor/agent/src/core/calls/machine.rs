//! The beginning of calls: each is parsed, judged by the gate, and passed to the component that carries it out.

use std::sync::Arc;
use std::time::Duration;

use gate::approval::{AgentSpawn, ApprovalSettings, Proposal, Scope, Subject};
use gate::judgement::{fetch, guest, judge, spawn};
use gate::tools::{
    ExternalCall, Invocation, PlanCall, Registry, Rendered, SHELL_EXEC, ServedCall, SpawnAgent, TaskList,
    WRITE_PLAN,
};
use gate::{Ask, Change, ChildRights, DeniedPart, SpawnVerdict, Verdict};
use ipc::codec::CodecError;
use ipc::id::{AgentId, ApprovalId, CallId, ConversationId};
use ipc::rights::{Grant, RightsChange};
use ipc::tool::{Access, ShellExec, ToolCall};
use protocol::approval::{AskKind, ReviewDecision, TurnAccess};
use protocol::event::{DecidedBy, EventKind, ListedTask, ObservedBy, TaskState, ToolCallStatus};
use serde_json::json;

use super::asked::Case;
use super::beside::OrphanDenials;
use super::declined::Declined;
use super::forms::HeldForms;
use super::hosts::HeldHosts;
use super::outcome::explained;
use super::planning::Planner;
use super::slots::{Open, Slots};
use crate::core::call::{CallResult, ToolUse};
use crate::core::conversation::{EARLIER_PLAN, OWN_COMMAND};
use crate::core::outbox::Outbox;
use crate::core::plan::{Execution, Planning};
use crate::core::rights::RightsState;
use crate::core::{Effect, Input, NewAgent, Purpose};

pub(in crate::core) struct Calls {
    pub(super) charter: Charter,
    pub(super) slots: Slots,
    pub(super) hosts: HeldHosts,
    pub(super) forms: HeldForms,
    pub(super) declined: Declined,
    pub(super) beside: OrphanDenials,
    /// The state of the agent's planning; `None` if the agent does not plan.
    pub(super) planner: Option<Planner>,
    /// The plan that the agent executes; `None` if it executes none.
    pub(super) execution: Option<Execution>,
    last_call: CallId,
    last_approval: ApprovalId,
}

pub(in crate::core) struct Charter {
    pub(in crate::core) conversation: ConversationId,
    pub(in crate::core) agent: AgentId,
    pub(in crate::core) tools: Arc<Registry>,
    pub(in crate::core) approvals: ApprovalSettings,
}

/// The basis for judging calls: the access, and the approximate number of tokens that are left for results.
#[derive(Clone, Copy)]
pub(in crate::core) struct Bounds<'a> {
    pub(in crate::core) rights: &'a RightsState,
    pub(in crate::core) room: u64,
}

/// The next step of the agent after an input to its calls.
#[must_use]
pub(in crate::core) enum After {
    Rest,
    /// Calls that wait may begin, and the results of the reply may be complete.
    GoOn,
    /// The person ended the turn by the answer to a request.
    Abort,
    /// The person approved a call. The scope says which later calls are covered too; `None` for none.
    Approved(Box<Case>, Option<Scope>),
    /// The person answered a request about this call, and allowed this access for the rest of the turn.
    AllowTurn(CallId, TurnAccess),
    /// The access changes, and calls continue.
    Change(RightsChange),
    /// The execution of a plan is over. The text says why it is incomplete; `None` if it is complete.
    Executed(Option<String>),
}

/// The reason why no further call begins.
pub(in crate::core) enum Begun {
    /// No other call can begin now.
    All,
    /// This call sets the agent's list of tasks. The agent has to store the list before other calls begin.
    Listed(CallId, Vec<ListedTask>),
}

/// The decision about a call before it is passed to a worker.
enum Begin {
    /// An invalid call, with its result.
    Answered(CallResult),
    /// A valid call, with the gate's verdict.
    Judged(Invocation, Verdict),
    Delegated(SpawnAgent, ChildRights),
    /// A sub-agent whose access needs an approval.
    Asked(SpawnAgent, ChildRights, Ask),
    /// A new plan, or a report on a step of a plan.
    Planned(PlanCall),
    /// A new list of tasks.
    Listed(TaskList),
}

impl Begin {
    /// True if no other call may be open at the same time.
    const fn is_alone(&self) -> bool {
        matches!(
            self,
            Self::Judged(_, Verdict::Prepare | Verdict::Ask(_)) | Self::Asked(..) | Self::Planned(_)
        )
    }
}

impl Calls {
    pub(in crate::core) fn new(
        charter: Charter,
        planning: Option<Planning>,
        execution: Option<Execution>,
    ) -> Self {
        Self {
            charter,
            slots: Slots::default(),
            hosts: HeldHosts::default(),
            forms: HeldForms::default(),
            declined: Declined::default(),
            beside: OrphanDenials::default(),
            planner: planning.map(Planner::new),
            execution,
            last_call: CallId(0),
            last_approval: ApprovalId(0),
        }
    }

    /// Sets the last ids of a call and of an approval. Later ids follow these.
    pub(in crate::core) const fn restore(&mut self, call: CallId, approval: ApprovalId) {
        (self.last_call, self.last_approval) = (call, approval);
    }

    /// Returns the last ids of a call and of an approval.
    pub(in crate::core) const fn last_ids(&self) -> (CallId, ApprovalId) {
        (self.last_call, self.last_approval)
    }

    pub(in crate::core) const fn next_call(&mut self) -> CallId {
        self.last_call = self.last_call.next();
        self.last_call
    }

    pub(super) const fn next_approval(&mut self) -> ApprovalId {
        self.last_approval = self.last_approval.next();
        self.last_approval
    }

    /// Adds the calls of a complete reply in order.
    pub(in crate::core) fn add(&mut self, tool_uses: Vec<ToolUse>) {
        for tool_use in tool_uses {
            let call = self.next_call();
            self.slots.push(call, tool_use);
        }
    }

    /// Adds a call of the person that executes an earlier plan. Returns false if no such call is possible.
    pub(in crate::core) fn add_plan(&mut self, markdown: &str) -> bool {
        let input = json!({ "markdown": markdown }).to_string();
        let Some(tool_use) = ToolUse::ours(EARLIER_PLAN.to_owned(), WRITE_PLAN, input) else { return false };
        let call = self.next_call();
        self.slots.push_of_user(call, tool_use);
        true
    }

    /// Begins a command that the person typed.
    pub(in crate::core) fn begin_own(
        &mut self,
        command: String,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let input = json!({ "command": command, "access": "write" }).to_string();
        let Some(tool_use) = ToolUse::ours(OWN_COMMAND.to_owned(), SHELL_EXEC, input) else {
            return After::GoOn;
        };
        let call = self.next_call();
        self.slots.push_of_user(call, tool_use.clone());
        self.log_started(call, &tool_use, bounds, out);
        match own_subject(command, bounds.rights) {
            Ok(subject) => {
                out.log_answer(call, None, ReviewDecision::Approved, DecidedBy::OwnCommand, None);
                // The command may write in the project, and gets no other access beyond the standing rights.
                let grant = Grant { write: vec![bounds.rights.seen().project().clone()], ..Grant::default() };
                let ask = Ask { kind: AskKind::Exec, grant };
                self.carry_out(Case { call, ask, subject }, None, bounds, out);
                After::Rest
            }
            Err(why) => {
                let text = format!("the command was not run: {why}");
                self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text), bounds, out);
                After::GoOn
            }
        }
    }

    /// Handles an input about calls. Other inputs are ignored.
    pub(in crate::core) fn on(&mut self, input: Input, bounds: Bounds<'_>, out: &mut Outbox) -> After {
        match input {
            Input::Progress { call, progress } => self.slots.note_progress(call, progress),
            // The supervisor's remark about a call is added to the call's result.
            Input::Remark { call, text } => self.slots.remark(call, text),
            Input::Refused(refused) => self.beside.on_refused(&refused, bounds.rights.seen(), out),
            Input::HostAsked(asked) => self.on_host_asked(asked, bounds, out),
            Input::FormAsked(asked) => self.on_form_asked(asked, bounds, out),
            Input::Prepared { call, proposal } => return self.on_prepared(call, proposal, bounds, out),
            Input::NotPrepared { call, reason } => return self.on_not_prepared(call, &reason, bounds, out),
            Input::Located { call, place } => return self.on_located(call, place, bounds, out),
            Input::Lapsed { id, by, cause } => return self.on_lapsed(id, by, &cause, bounds, out),
            _ => {}
        }
        After::Rest
    }

    /// If no other call is open, asks about the next call, or carries out the next approved change of a shared request.
    pub(in crate::core) fn ask_next(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        self.ask_gathered(bounds, out);
        self.carry_out_next(bounds, out);
        self.ask_again(bounds, out);
    }

    /// Returns the hosts allowed for the session as a change of access. `None` if none, or while it would end a call.
    pub(in crate::core) fn take_allowed_hosts(&mut self) -> Option<Change> {
        if self.slots.any_begun() || self.slots.next_held().is_some() {
            return None;
        }
        let hosts = self.hosts.take_allowed()?;
        Some(Change::Rights(RightsChange::AddHosts { hosts, reach: None }))
    }

    pub(in crate::core) fn begin(&mut self, bounds: Bounds<'_>, out: &mut Outbox) -> Begun {
        while let Some((call, tool_use)) = self.slots.next() {
            let begin = self.judge(call, &tool_use, bounds);
            if begin.is_alone() && self.slots.any_begun() {
                return Begun::All;
            }
            self.log_started(call, &tool_use, bounds, out);
            if let Begin::Listed(TaskList(tasks)) = begin {
                return Begun::Listed(call, tasks);
            }
            self.begin_call(call, begin, bounds, out);
        }
        Begun::All
    }

    /// Closes a call that set the list of tasks.
    pub(in crate::core) fn close_listed(
        &mut self,
        call: CallId,
        tasks: &[ListedTask],
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let done = tasks.iter().filter(|task| task.state == TaskState::Done).count();
        let told = format!("The list has {} tasks, {done} of them done.", tasks.len());
        self.close_at_once(call, CallResult::answered(told), bounds, out);
    }

    /// Logs the start of a call before the call runs.
    pub(super) fn log_started(
        &mut self,
        call: CallId,
        tool_use: &ToolUse,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        if self.slots.note_logged(call) {
            return;
        }
        let invocation = tool_use.read(&self.charter.tools).ok();
        let project = bounds.rights.seen().project();
        out.log(EventKind::ToolCallStarted {
            call,
            tool_use: tool_use.id.clone(),
            name: tool_use.name.clone(),
            kind: invocation.as_ref().map(Invocation::kind).unwrap_or_default(),
            locations: invocation.map(|invocation| invocation.locations(project)).unwrap_or_default(),
            input: tool_use.written(),
        });
    }

    fn begin_call(&mut self, call: CallId, begin: Begin, bounds: Bounds<'_>, out: &mut Outbox) {
        match begin {
            Begin::Answered(result) => self.close_at_once(call, result, bounds, out),
            Begin::Planned(PlanCall::Write { markdown }) => self.write_plan(call, markdown, bounds, out),
            Begin::Planned(PlanCall::Update(update)) => self.update_step(call, update, bounds, out),
            Begin::Delegated(spawn, child) => self.delegate(call, spawn, child, bounds, out),
            Begin::Asked(spawn, child, ask) => {
                self.ask_to_delegate(call, AgentSpawn::new(spawn, child), ask, bounds, out);
            }
            Begin::Judged(invocation, Verdict::Deny(denial)) => {
                let remedy = self.remedy_for(&invocation, bounds);
                let said =
                    Rendered::failure(format!("the call was not carried out{}", remedy.unwrap_or_default()));
                let result = explained(vec![denial], said, bounds.rights.seen(), ObservedBy::Supervisor);
                self.close_at_once(call, result, bounds, out);
            }
            Begin::Judged(Invocation::Worker(tool), Verdict::Run) => self.dispatch(call, tool, out),
            Begin::Judged(Invocation::Worker(tool), Verdict::Prepare) => {
                out.push(Effect::Prepare { call, tool: tool.clone() });
                self.slots.open_as(call, Open::Preparing(tool));
            }
            Begin::Judged(Invocation::Worker(tool), Verdict::Ask(ask)) => {
                self.ask_for_command(call, tool, ask, bounds, out);
            }
            Begin::Judged(Invocation::Supervisor(own), Verdict::Run) => {
                self.serve(call, ServedCall::Supervisor(own), bounds, out);
            }
            Begin::Judged(Invocation::External(external), Verdict::Run) => {
                if guest::runs_by_settings(bounds.rights.seen(), &external) {
                    out.log_answer(call, None, ReviewDecision::Approved, DecidedBy::Configuration, None);
                }
                self.serve(call, ServedCall::External(external), bounds, out);
            }
            Begin::Judged(Invocation::External(external), Verdict::Ask(ask)) => {
                self.ask(Case { call, ask, subject: Subject::External(external) }, bounds, out);
            }
            Begin::Judged(Invocation::Fetch(fetch), Verdict::Run) => {
                let permitted = fetch::permit(bounds.rights.seen(), fetch, None);
                self.serve(call, ServedCall::Fetch(permitted), bounds, out);
            }
            Begin::Judged(Invocation::Fetch(fetch), Verdict::Ask(ask)) => {
                self.ask(Case { call, ask, subject: Subject::Fetch(fetch) }, bounds, out);
            }
            // The other combinations cannot be carried out.
            Begin::Listed(_)
            | Begin::Judged(
                Invocation::Supervisor(_)
                | Invocation::External(_)
                | Invocation::Fetch(_)
                | Invocation::Agent(_)
                | Invocation::Plan(_)
                | Invocation::Tasks(_),
                _,
            ) => {
                let text =
                    "the call was not carried out: a call of this tool can be neither prepared nor approved";
                self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text), bounds, out);
            }
        }
    }

    pub(super) fn dispatch(&mut self, call: CallId, tool: ToolCall, out: &mut Outbox) {
        out.push(Effect::Dispatch { call, tool: tool.clone() });
        self.slots.open_as(call, Open::Serving(tool));
    }

    pub(super) fn serve(&mut self, call: CallId, served: ServedCall, bounds: Bounds<'_>, out: &mut Outbox) {
        let timeout = Duration::from_millis(bounds.rights.seen().rights().limits.timeout_ms);
        out.push(Effect::Serve { call, served: served.clone(), timeout });
        self.slots.open_as(call, Open::Served(served));
    }

    pub(super) fn delegate(
        &mut self,
        call: CallId,
        spawn: SpawnAgent,
        child: ChildRights,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let ChildRights { rights, grant } = child;
        let purpose = Purpose::Task(bounds.rights.activity());
        let agent = Box::new(NewAgent { spawn, rights, grant, purpose });
        out.push(Effect::SpawnAgent { call, agent });
        self.slots.open_as(call, Open::Delegated);
    }

    /// Asks the person about a sub-agent's access that the parent itself does not have.
    fn ask_to_delegate(
        &mut self,
        call: CallId,
        spawn: Result<AgentSpawn, CodecError>,
        ask: Ask,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        match spawn {
            Ok(spawn) => {
                self.ask(Case { call, ask, subject: Subject::Agent(Box::new(spawn)) }, bounds, out);
            }
            Err(error) => {
                let cause = format!("the access of the sub-agent cannot be shown: {error}");
                self.deny(call, None, DecidedBy::BadAnswer, &cause, bounds, out);
            }
        }
    }

    /// Returns the step by which the user can allow a denied call of an MCP server; `None` if there is no such step.
    fn remedy_for(&self, invocation: &Invocation, bounds: Bounds<'_>) -> Option<String> {
        let Invocation::External(external) = invocation else { return None };
        let part = match (&self.planner, &self.execution) {
            (_, Some(_)) => DeniedPart::Executor,
            (Some(_), None) => DeniedPart::Planner,
            (None, None) if bounds.rights.is_top_level() => DeniedPart::First,
            (None, None) => DeniedPart::SubAgent,
        };
        guest::remedy(bounds.rights.seen(), external, part)
    }

    fn judge(&self, call: CallId, tool_use: &ToolUse, bounds: Bounds<'_>) -> Begin {
        match tool_use.read(&self.charter.tools) {
            Ok(Invocation::Plan(plan)) => Begin::Planned(plan),
            Ok(Invocation::Tasks(list)) => Begin::Listed(list),
            Ok(_) if self.execution.as_ref().is_some_and(Execution::is_stopped) => {
                let text =
                    "the call was not carried out: a step failed, and execution has ended; end your turn";
                Begin::Answered(CallResult::not_done(ToolCallStatus::Failed, text))
            }
            // The person wants to be asked for every command, and a plan's approval does not change that.
            Ok(invocation) if self.slots.is_part(call) && self.charter.approvals.confirm_shell => {
                let ask = Ask { kind: AskKind::Exec, grant: Grant::default() };
                Begin::Judged(invocation, Verdict::Ask(ask))
            }
            Ok(Invocation::External(external)) if self.plan_lists(&external) => {
                Begin::Judged(Invocation::External(external), Verdict::Run)
            }
            Ok(Invocation::Agent(spawn)) => judge_spawn(spawn, bounds.rights),
            Ok(invocation) => {
                let verdict = judge::call(bounds.rights.seen(), &invocation, bounds.rights.position());
                Begin::Judged(invocation, verdict)
            }
            Err(error) => Begin::Answered(CallResult::not_done(ToolCallStatus::Failed, error.to_string())),
        }
    }

    /// True if the agent executes a plan that lists this MCP tool.
    fn plan_lists(&self, external: &ExternalCall) -> bool {
        self.execution.as_ref().is_some_and(|execution| execution.lists(external))
    }

    pub(in crate::core) fn are_closed(&self) -> bool {
        self.slots.are_closed()
    }

    pub(in crate::core) fn are_of_user(&self) -> bool {
        self.slots.are_of_user()
    }

    pub(in crate::core) fn on_worker_ready(&mut self) {
        self.beside.begin();
    }
}

fn judge_spawn(spawn: SpawnAgent, rights: &RightsState) -> Begin {
    match spawn::judge(rights.standing(), &spawn, rights.position()) {
        SpawnVerdict::Run(child) => Begin::Delegated(spawn, child),
        SpawnVerdict::Ask(child, ask) => Begin::Asked(spawn, child, ask),
        SpawnVerdict::Deny(denial) => Begin::Judged(Invocation::Agent(spawn), Verdict::Deny(denial)),
        SpawnVerdict::Misfit(why) => {
            let text = format!("`spawn_agent` was not run: {why}");
            Begin::Answered(CallResult::not_done(ToolCallStatus::Failed, text))
        }
    }
}

fn own_subject(command: String, rights: &RightsState) -> Result<Subject, String> {
    if rights.seen().rights().exec == ipc::rights::Execution::Denied {
        return Err("this session cannot run commands".to_owned());
    }
    if rights.has_failed() {
        return Err("no worker could be started with the current access".to_owned());
    }
    let call = ShellExec { command, access: Access::Write, network: None, cwd: None, timeout_ms: None };
    let proposal = Proposal::of_command(rights.seen(), &call).map_err(|error| error.to_string())?;
    Ok(Subject::Effect { tool: ToolCall::ShellExec(call), proposal, denied: None })
}
