//! The summary of one agent: its access, workers, calls, approvals, denials, cost and end.

use std::collections::BTreeMap;

use ipc::confinement::Tier;
use ipc::denial::Denial;
use ipc::id::{AgentId, ApprovalId, CallId, Generation};
use ipc::rights::{Grant, RightsSummary};
use protocol::approval::AskKind;
use protocol::cost::Usd;
use protocol::event::{
    Account, AppliedPart, ApprovalAnswered, EventKind, HostUse, OneShot, Recorded, SessionEvent,
    SubAgentResult, SubAgentSpawned, TokenUsage, ToolPinned, WorkerStarted,
};
use serde::Serialize;

use super::account::parent_of;
use super::by_agent::EventsByAgent;
use super::guest_account::GuestAccount;
use crate::journal::shown::{about, decided_by, decision};

#[derive(Debug, Serialize)]
pub(super) struct AgentAccount {
    pub agent: AgentId,
    /// The agent that started this agent; `None` at the top level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The agent's task: in the words of the parent agent, or for a top-level agent, the person's first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The event that started the agent, with its access; `None` at the top level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned: Option<SubAgentSpawned>,
    pub workers: Vec<WorkerAccount>,
    /// Confined processes with access of their own: gateways, fetches, MCP servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestAccount>,
    /// Tools of MCP servers on which the agent relied, and tools whose description a server changed later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<ToolPinned>,
    pub calls: BTreeMap<String, BTreeMap<String, usize>>,
    pub approvals: Vec<Approval>,
    /// Denials of the agent's operations. Equal denials are in one group.
    pub denials: Vec<DenialGroup>,
    pub restored: Vec<String>,
    /// Tokens of the agent without its sub-agents, with their price.
    #[serde(flatten)]
    pub own: Spend,
    pub with_sub_agents: Spend,
    /// Last status of the agent in one word; `None` if the log has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Time in milliseconds from the agent's start to its end; to its last event if it has not ended.
    pub duration_ms: u64,
    /// The result that the parent agent received; `None` if the log has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<SubAgentResult>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spend {
    pub usage: TokenUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// The part of the cost for which a price is known.
    #[serde(skip)]
    pub known: Usd,
}

/// The summary of a worker: its access, its sandbox as reported at the start, and its end.
#[derive(Debug, Serialize)]
pub(super) struct WorkerAccount {
    pub generation: Generation,
    pub tier: Tier,
    pub rights: Recorded<RightsSummary>,
    /// SHA-256 of the worker's access.
    pub rights_digest: String,
    /// SHA-256 of the access and the kernel's rules.
    pub ruleset_digest: String,
    pub landlock_abi: u32,
    pub rules: u32,
    /// Security guarantees that the worker's sandbox did not enforce at the start.
    pub not_enforced: Vec<String>,
    /// Additional approved access of a one-shot worker; `None` for other workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Recorded<Grant>>,
    /// The call or rewind for which a one-shot worker was started; `None` for other workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Hosts that the worker's programs connected to by name, or failed to connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostUse>,
    /// The reason for the worker's end; `None` if the log has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Approval {
    #[serde(skip)]
    id: Option<ApprovalId>,
    pub call: CallId,
    /// Subject of the approval request; `None` if an earlier approval decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<&'static str>,
    /// The decision; `None` if the log has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for a decision that the person did not make; `None` for other decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The part of the change that was approved; `None` if the decision was about all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_part: Option<AppliedPart>,
}

#[derive(Debug, Serialize)]
pub(super) struct DenialGroup {
    pub denial: String,
    pub count: usize,
    /// Calls to which the denial happened; empty if it happened outside of calls.
    pub calls: Vec<CallId>,
}

impl AgentAccount {
    /// Summarizes an agent from its own events, and from events of its parent about it.
    pub(super) fn of(agent: &AgentId, events: &EventsByAgent<'_>) -> Self {
        let mut account = Self {
            agent: agent.clone(),
            parent: parent_of(agent),
            task: None,
            spawned: None,
            workers: Vec::new(),
            guests: Vec::new(),
            pinned: Vec::new(),
            calls: BTreeMap::new(),
            approvals: Vec::new(),
            denials: Vec::new(),
            restored: Vec::new(),
            own: events.account(agent).into(),
            with_sub_agents: events.account_with_sub_agents(agent).into(),
            status: None,
            duration_ms: duration_ms(agent, events),
            result: None,
        };
        let mut names = BTreeMap::new();
        let began_ms = events.began_ms();
        for event in events.about(agent) {
            account.take_report(event);
            if event.agent == *agent {
                account.take(event, &mut names);
                account.take_guest(event, event.time_ms.saturating_sub(began_ms));
            }
        }
        account
    }

    fn take_report(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::SubAgentSpawned(spawned) if spawned.agent == self.agent => {
                self.task = Some(spawned.task.clone());
                self.spawned = Some(spawned.clone());
            }
            EventKind::SubAgentResult(result) if result.agent == self.agent => {
                self.status = Some(result.status.to_string());
                self.duration_ms = result.duration_ms;
                self.result = Some(result.clone());
            }
            EventKind::Result(result) if self.parent.is_none() => {
                self.status = Some(result.reason.to_string());
            }
            _ => {}
        }
    }

    fn take(&mut self, event: &SessionEvent, names: &mut BTreeMap<CallId, String>) {
        match &event.kind {
            EventKind::UserMessage { text, .. } if self.task.is_none() => self.task = Some(text.clone()),
            EventKind::WorkerStarted(started) => self.workers.push(WorkerAccount::of(started)),
            EventKind::WorkerEnded { generation, reason } => self.end_worker(*generation, reason.to_string()),
            EventKind::HostsUsed { generation, uses } => self.take_uses(*generation, uses),
            EventKind::ToolCallStarted { call, name, .. } => drop(names.insert(*call, name.clone())),
            EventKind::ToolCallFinished { call, status, .. } => {
                let name = names.get(call).cloned().unwrap_or_default();
                *self.calls.entry(name).or_default().entry(status.to_string()).or_default() += 1;
            }
            EventKind::Denied { call, denial, .. } => self.take_denial(*call, denial),
            EventKind::ApprovalRequested { id, request } => {
                self.approvals.push(Approval::asked(*id, request.call_id(), request.kind()));
            }
            EventKind::ApprovalAnswered(answered) => self.take_answer(answered),
            EventKind::Restored { places, .. } => {
                self.restored
                    .extend(places.iter().map(|place| format!("{}: {}", place.path, place.phrase())));
            }
            EventKind::TurnFinished(finished) if self.parent.is_none() => {
                self.status = Some(finished.reason.to_string());
            }
            _ => {}
        }
    }

    fn take_guest(&mut self, event: &SessionEvent, at_ms: u64) {
        match &event.kind {
            EventKind::GuestStarted(started) => self.guests.push(GuestAccount::new(started, at_ms)),
            EventKind::GuestEnded(ended) => {
                let open = self.guests.iter_mut().rev().find(|guest| guest.is_open(ended.guest));
                if let Some(guest) = open {
                    guest.end(ended, at_ms);
                }
            }
            EventKind::ToolPinned(pinned) => self.pinned.push(pinned.clone()),
            _ => {}
        }
    }

    fn worker(&mut self, generation: Generation) -> Option<&mut WorkerAccount> {
        self.workers.iter_mut().rev().find(|worker| worker.generation == generation)
    }

    fn end_worker(&mut self, generation: Generation, reason: String) {
        if let Some(worker) = self.worker(generation) {
            worker.ended = Some(reason);
        }
    }

    /// Replaces the counts of a worker's hosts. Each event has the totals since the worker's start, not an increment.
    fn take_uses(&mut self, generation: Generation, uses: &[HostUse]) {
        let Some(worker) = self.worker(generation) else { return };
        for host in uses {
            worker.hosts.retain(|known| use_of(known) != use_of(host));
            worker.hosts.push(host.clone());
        }
    }

    pub(super) fn hosts(&self) -> Vec<HostUse> {
        let mut sums = BTreeMap::<_, HostUse>::new();
        for host in self.workers.iter().flat_map(|worker| &worker.hosts) {
            let sum = sums.entry(use_of(host)).or_insert_with(|| HostUse {
                connections: 0,
                failures: 0,
                sent: 0,
                received: 0,
                failure: None,
                ..host.clone()
            });
            sum.connections = sum.connections.saturating_add(host.connections);
            sum.failures = sum.failures.saturating_add(host.failures);
            sum.sent = sum.sent.saturating_add(host.sent);
            sum.received = sum.received.saturating_add(host.received);
            sum.failure = host.failure.clone().or(sum.failure.take());
        }
        sums.into_values().collect()
    }

    fn take_denial(&mut self, call: Option<CallId>, denial: &Denial) {
        let denial = denial.to_string();
        let same =
            |group: &&mut DenialGroup| group.denial == denial && group.calls.is_empty() == call.is_none();
        if let Some(group) = self.denials.iter_mut().find(same) {
            group.count += 1;
            group.calls.extend(call);
        } else {
            self.denials.push(DenialGroup { denial, count: 1, calls: call.into_iter().collect() });
        }
    }

    fn take_answer(&mut self, answered: &ApprovalAnswered) {
        let open = |approval: &&mut Approval| {
            approval.decision.is_none() && approval.id.is_some() && approval.id == answered.id
        };
        if let Some(approval) = self.approvals.iter_mut().find(open) {
            approval.decide(answered);
        } else {
            // Nobody was asked: an earlier approval decided, or the command is the person's own.
            let mut approval = Approval::of_call(answered.call);
            approval.decide(answered);
            self.approvals.push(approval);
        }
    }
}

impl From<Account> for Spend {
    fn from(Account { usage, cost, known }: Account) -> Self {
        Self { usage, cost_usd: cost, known }
    }
}

impl From<Spend> for Account {
    fn from(Spend { usage, cost_usd, known }: Spend) -> Self {
        Self { usage, cost: cost_usd, known }
    }
}

/// Returns the values that identify a use of a host: host, port and program.
fn use_of(host: &HostUse) -> [String; 3] {
    [host.host.clone(), host.port.to_string(), host.program.clone()]
}

pub(super) fn purpose(one_shot: &OneShot) -> String {
    one_shot.call.map_or_else(|| "a rewind".to_owned(), |call| format!("call {call}"))
}

impl WorkerAccount {
    fn of(started: &WorkerStarted) -> Self {
        Self {
            generation: started.generation,
            tier: started.tier,
            rights: started.rights.clone(),
            rights_digest: started.rights_digest.clone(),
            ruleset_digest: started.ruleset_digest.clone(),
            landlock_abi: started.landlock_abi,
            rules: started.rules,
            not_enforced: started.not_enforced.clone(),
            grant: started.one_shot.as_ref().map(|one_shot| one_shot.grant.clone()),
            purpose: started.one_shot.as_ref().map(purpose),
            hosts: Vec::new(),
            ended: None,
        }
    }
}

impl Approval {
    const fn of_call(call: CallId) -> Self {
        Self { id: None, call, about: None, decision: None, by: None, cause: None, in_part: None }
    }

    fn asked(id: ApprovalId, call: CallId, kind: AskKind) -> Self {
        Self { id: Some(id), about: Some(about(kind)), ..Self::of_call(call) }
    }

    fn decide(&mut self, answered: &ApprovalAnswered) {
        self.decision = Some(decision(&answered.decision));
        self.by = Some(decided_by(answered.by));
        self.cause.clone_from(&answered.cause);
        self.in_part.clone_from(&answered.in_part);
    }
}

fn duration_ms(agent: &AgentId, events: &EventsByAgent<'_>) -> u64 {
    let mut times = events.own(agent).map(|event| event.time_ms);
    let first = times.next().unwrap_or_default();
    times.next_back().unwrap_or(first).saturating_sub(first)
}
