//! The agents of a conversation, for its front end.

use std::collections::{BTreeMap, BTreeSet};

use ipc::id::{AgentId, ApprovalId, CallId};
use ipc::rights::RightsSummary;
use protocol::event::{
    Account, EventKind, GuestEnded, GuestStarted, Recorded, SessionEvent, SubAgentSpawned, SubAgentStatus,
};
use protocol::frontend::{UiEvent, UiEventKind};
use protocol::rpc::{AgentInfo, AgentState, GuestInfo, OpenCall};

/// Maximum number of ended guests that are listed for an agent.
const ENDED_GUESTS: usize = 20;

/// The agents that a conversation has had so far.
#[derive(Debug, Default)]
pub(in crate::front) struct Agents {
    known: BTreeMap<AgentId, KnownAgent>,
}

#[derive(Debug, Default)]
struct KnownAgent {
    parent: Option<AgentId>,
    task: Option<String>,
    model: String,
    rights: Option<RightsSummary>,
    status: Option<SubAgentStatus>,
    calls: BTreeMap<CallId, String>,
    approvals: BTreeSet<ApprovalId>,
    /// The call that waits until another agent has finished its writes; `None` if no call does.
    awaits_turn: Option<CallId>,
    guests: Vec<GuestInfo>,
    steps: u64,
    account: Account,
    began_ms: Option<u64>,
    ended_ms: Option<u64>,
}

impl Agents {
    /// Returns all agents. Each comes before its sub-agents.
    pub(in crate::front) fn list(&self) -> Vec<AgentInfo> {
        let mut agents: Vec<_> = self.known.iter().map(|(agent, known)| known.info(agent)).collect();
        agents.sort_by(|one, other| one.agent.in_tree().cmp(&other.agent.in_tree()));
        agents
    }

    pub(in crate::front) fn state(&self, agent: &AgentId) -> Option<AgentState> {
        self.known.get(agent).map(KnownAgent::state)
    }

    /// Updates the agents from an event for the front end.
    pub(in crate::front) fn on(&mut self, event: &UiEvent) {
        match &event.kind {
            UiEventKind::Logged(logged) => self.logged(logged),
            UiEventKind::ApprovalRequested { id, .. } => {
                self.of(&event.agent).approvals.insert(*id);
            }
            UiEventKind::ApprovalClosed { id } => {
                self.of(&event.agent).approvals.remove(id);
            }
            UiEventKind::TextDelta { .. }
            | UiEventKind::ThinkingDelta { .. }
            | UiEventKind::OutputDelta { .. }
            | UiEventKind::FileNames { .. }
            | UiEventKind::Branch { .. }
            | UiEventKind::ServerPrompts { .. }
            | UiEventKind::PromptExpanded(_)
            | UiEventKind::RewindPreview(_)
            | UiEventKind::LogPaused { .. }
            | UiEventKind::LogGoesOn
            | UiEventKind::SpentBefore { .. } => {}
        }
    }

    fn of(&mut self, agent: &AgentId) -> &mut KnownAgent {
        self.known.entry(agent.clone()).or_default()
    }

    fn logged(&mut self, event: &SessionEvent) {
        let SessionEvent { agent, time_ms, kind, .. } = event;
        match kind {
            EventKind::SubAgentSpawned(spawned) => self.spawned(agent, spawned),
            EventKind::SubAgentResult(result) => {
                let child = self.of(&result.agent);
                child.parent = Some(agent.clone());
                child.status = Some(result.status);
                child.end(*time_ms);
            }
            _ => self.of(agent).on(*time_ms, kind),
        }
    }

    fn spawned(&mut self, parent: &AgentId, spawned: &SubAgentSpawned) {
        let child = self.of(&spawned.agent);
        child.parent = Some(parent.clone());
        child.task = Some(spawned.task.clone());
        child.model.clone_from(&spawned.model);
    }
}

impl KnownAgent {
    fn on(&mut self, time_ms: u64, kind: &EventKind) {
        match kind {
            EventKind::SessionStarted(started) => self.model.clone_from(&started.model),
            EventKind::ModelChanged(changed) => self.model.clone_from(&changed.to),
            EventKind::UserMessage { .. } | EventKind::CompactionStarted(_) => self.begin(time_ms),
            EventKind::AssistantMessage(message) => {
                self.steps += 1;
                self.account += Account::of(message.usage, message.cost_usd);
            }
            EventKind::ContextCompacted(compacted) => {
                self.account += Account::of(compacted.usage, compacted.cost_usd);
            }
            EventKind::ToolCallStarted { call, name, .. } => {
                self.calls.insert(*call, name.clone());
            }
            EventKind::ToolCallFinished { call, .. } => {
                self.calls.remove(call);
                self.awaits_turn.take_if(|waiting| waiting == call);
            }
            EventKind::WriteTurnAwaited(waits) => self.awaits_turn = Some(waits.call),
            EventKind::WriteTurnTaken(_) => self.awaits_turn = None,
            EventKind::WorkerStarted(started) if started.one_shot.is_none() => {
                self.set_rights(&started.rights);
            }
            EventKind::RightsChanged(changed) => self.set_rights(&changed.rights),
            EventKind::GuestStarted(started) => self.guest_started(time_ms, started),
            EventKind::GuestEnded(ended) => self.guest_ended(time_ms, ended),
            EventKind::TurnFinished(_) => self.end(time_ms),
            _ => {}
        }
    }

    fn set_rights(&mut self, rights: &Recorded<RightsSummary>) {
        self.rights = rights.value().cloned();
    }

    fn guest_started(&mut self, time_ms: u64, started: &GuestStarted) {
        let GuestStarted { guest, kind, name, worker, of, call, rights, hosts, .. } = started.clone();
        let (began_ms, ended_ms, reason, totals) = (time_ms, None, None, None);
        self.guests.push(GuestInfo {
            guest,
            kind,
            name,
            worker,
            of,
            call,
            rights,
            hosts,
            began_ms,
            ended_ms,
            reason,
            totals,
        });
    }

    /// Records the end of a guest, and removes the oldest ended guests. A continued session numbers its guests anew.
    fn guest_ended(&mut self, time_ms: u64, ended: &GuestEnded) {
        let of = |info: &&mut GuestInfo| info.guest == ended.guest && info.ended_ms.is_none();
        if let Some(info) = self.guests.iter_mut().find(of) {
            info.ended_ms = Some(time_ms);
            info.reason = Some(ended.reason.clone());
            info.totals = Some(ended.totals);
        }
        let has_ended = |info: &GuestInfo| info.ended_ms.is_some();
        if self.guests.iter().filter(|info| has_ended(info)).count() > ENDED_GUESTS
            && let Some(oldest) = self.guests.iter().position(has_ended)
        {
            self.guests.remove(oldest);
        }
    }

    /// Starts a turn, unless one is running.
    fn begin(&mut self, time_ms: u64) {
        if self.began_ms.is_none() || self.ended_ms.is_some() {
            (self.began_ms, self.ended_ms) = (Some(time_ms), None);
        }
    }

    fn end(&mut self, time_ms: u64) {
        self.calls.clear();
        self.approvals.clear();
        self.awaits_turn = None;
        self.ended_ms.get_or_insert(time_ms);
    }

    fn state(&self) -> AgentState {
        match () {
            () if self.status.is_some() => AgentState::Over,
            () if !self.approvals.is_empty() => AgentState::Approval,
            () if self.awaits_turn.is_some() => AgentState::WriteTurn,
            () if !self.calls.is_empty() => AgentState::Calls,
            () if self.began_ms.is_some() && self.ended_ms.is_none() => AgentState::Model,
            () => AgentState::AtRest,
        }
    }

    fn info(&self, agent: &AgentId) -> AgentInfo {
        let calls = self.calls.iter().map(|(call, name)| OpenCall { call: *call, name: name.clone() });
        AgentInfo {
            agent: agent.clone(),
            parent: self.parent.clone(),
            task: self.task.clone(),
            model: self.model.clone(),
            rights: self.rights.clone(),
            state: self.state(),
            status: self.status,
            calls: calls.collect(),
            guests: self.guests.clone(),
            steps: self.steps,
            usage: self.account.usage,
            cost_usd: self.account.cost,
            began_ms: self.began_ms,
            ended_ms: self.ended_ms,
        }
    }
}
