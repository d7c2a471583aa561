//! Findings about access: a sub-agent must have its declared access, and this must be within the access of its parent.

use std::collections::BTreeMap;

use ipc::id::{AgentId, ApprovalId, CallId, EventId, Generation};
use ipc::rights::{Grant, Rights};
use protocol::approval::{ReviewDecision, ServerRequest};
use protocol::event::{
    ApprovalAnswered, DecidedBy, EventKind, PlanApproved, RightsChanged, SessionEvent, SubAgentSpawned,
    WorkerStarted,
};

use super::{Finding, Rule, finding};
use crate::inspect::audit::by_agent::EventsByAgent;
use crate::journal::session::Tree;

/// Number of digits of a digest that are shown.
const SHORT: usize = 12;

pub(super) fn findings(tree: &Tree, events: &EventsByAgent<'_>) -> Vec<Finding> {
    let mut known = KnownRights::default();
    let mut found = Vec::new();
    for event in tree.events() {
        found.extend(known.take(event));
    }
    // The log of a killed session may end between a worker's start and the event about the change of access.
    let goes_on = |other: &OtherRights| {
        events.own(&other.finding.agent).next_back().is_some_and(|last| last.id > other.event)
    };
    found.extend(known.unlogged.into_values().filter(goes_on).map(|other| other.finding));
    found
}

#[derive(Default)]
struct KnownRights<'a> {
    spawned: BTreeMap<&'a AgentId, &'a SubAgentSpawned>,
    /// SHA-256 of the access of each agent's last long-lived worker.
    digest: BTreeMap<&'a AgentId, &'a str>,
    /// For each agent, the worker whose access changed although the log has no such change so far.
    unlogged: BTreeMap<&'a AgentId, OtherRights<'a>>,
    asked: BTreeMap<(&'a AgentId, ApprovalId), &'a ServerRequest>,
    approved: BTreeMap<(&'a AgentId, CallId), &'a ServerRequest>,
    /// Plans that flags of the command line approved, each with the access that its execution needs.
    by_flags: BTreeMap<(&'a AgentId, CallId), Grant>,
}

struct OtherRights<'a> {
    event: EventId,
    generation: Generation,
    digest: &'a str,
    finding: Finding,
}

impl<'a> KnownRights<'a> {
    fn take(&mut self, event: &'a SessionEvent) -> Vec<Finding> {
        let agent = &event.agent;
        match &event.kind {
            EventKind::SubAgentSpawned(spawned) => return self.start(agent, spawned),
            // A new process of the session starts with the access from its own settings.
            EventKind::SessionStarted(_) => self.digest.clear(),
            EventKind::WorkerStarted(started) if started.one_shot.is_none() => {
                self.start_worker(event, started);
            }
            EventKind::RightsChanged(RightsChanged { generation, rights_digest, .. }) => {
                let is_of = |other: &OtherRights<'_>| {
                    other.generation == *generation && other.digest == rights_digest
                };
                if self.unlogged.get(agent).is_some_and(is_of) {
                    self.unlogged.remove(agent);
                }
            }
            EventKind::ApprovalRequested { id, request } => drop(self.asked.insert((agent, *id), request)),
            EventKind::PlanApproved(plan) => self.take_plan(agent, plan),
            EventKind::ApprovalAnswered(answered) => self.take_answer(agent, answered),
            _ => {}
        }
        Vec::new()
    }

    fn take_answer(&mut self, agent: &'a AgentId, answered: &ApprovalAnswered) {
        if answered.by != DecidedBy::User || answered.decision != ReviewDecision::Approved {
            return;
        }
        let request = answered.id.and_then(|id| self.asked.get(&(agent, id)));
        if let Some(request) = request.filter(|request| request.call_id() == answered.call) {
            self.approved.insert((agent, answered.call), request);
        }
    }

    fn take_plan(&mut self, agent: &'a AgentId, plan: &PlanApproved) {
        let PlanApproved { call, write, net, reach, by, .. } = plan;
        if let (Some(call), DecidedBy::Configuration) = (call, by) {
            let grant = Grant { write: write.clone(), net: net.clone(), reach: *reach, ..Grant::default() };
            self.by_flags.insert((agent, *call), grant);
        }
    }

    fn start(&mut self, parent: &AgentId, spawned: &'a SubAgentSpawned) -> Vec<Finding> {
        self.spawned.insert(&spawned.agent, spawned);
        let beyond = self.spawned.get(parent).and_then(|above| beyond(above, spawned));
        beyond.into_iter().chain(self.unapproved(parent, spawned)).collect()
    }

    fn unapproved(&self, parent: &AgentId, spawned: &SubAgentSpawned) -> Option<Finding> {
        let grant = spawned.grant.as_ref()?;
        let agent = &spawned.agent;
        let call = spawned.call.map(|call| (parent, call));
        if call.and_then(|call| self.by_flags.get(&call)).is_some_and(|plan| covers(plan, grant)) {
            return None;
        }
        let text = match call.and_then(|call| self.approved.get(&call)) {
            None => format!("agent {agent} received {grant}, which no user approved"),
            Some(ServerRequest::AgentRightsApproval(asked)) if covers(&asked.grant, grant) => return None,
            Some(ServerRequest::AgentRightsApproval(asked)) => {
                format!("agent {agent} received {grant}, but the user approved {}", asked.grant)
            }
            Some(ServerRequest::PlanApproval(asked)) if covers(&asked.grant, grant) => return None,
            Some(_) => format!("agent {agent} received {grant}, but the user approved something else"),
        };
        Some(finding(Rule::ApprovedGrant, agent, text))
    }

    fn start_worker(&mut self, event: &'a SessionEvent, started: &'a WorkerStarted) {
        let (agent, generation, digest) = (&event.agent, started.generation, started.rights_digest.as_str());
        let has = short(digest);
        let (expected, rule, text) = match (self.digest.insert(agent, digest), self.spawned.get(agent)) {
            (Some(before), _) => {
                let text = format!(
                    "worker {generation} of agent {agent} has other access ({has}) than the agent's worker before ({}), and no change of access is logged",
                    short(before)
                );
                (before, Rule::LoggedChange, text)
            }
            (None, Some(SubAgentSpawned { rights_digest, .. })) => {
                let declared = short(rights_digest);
                let text = format!(
                    "agent {agent} was started with the access {declared}, but its first worker has the access {has}"
                );
                (rights_digest.as_str(), Rule::DeclaredRights, text)
            }
            (None, None) => return,
        };
        if expected != digest {
            let finding = finding(rule, agent, text);
            self.unlogged.insert(agent, OtherRights { event: event.id, generation, digest, finding });
        }
    }
}

/// Returns a finding if a sub-agent has more access than its parent has plus the sub-agent's grant.
fn beyond(parent: &SubAgentSpawned, child: &SubAgentSpawned) -> Option<Finding> {
    let allowed = rights_of(parent).with_grant(&child.grant.clone().unwrap_or_default());
    let rights = rights_of(child);
    if allowed.covers(&rights) {
        return None;
    }
    let agent = &child.agent;
    let has = as_grant(&rights);
    let text = format!(
        "agent {agent} has {has}, which exceeds the access of agent {} and what was approved in addition",
        parent.agent
    );
    Some(finding(Rule::WithinParent, agent, text))
}

fn rights_of(SubAgentSpawned { write, net, reach, sockets, .. }: &SubAgentSpawned) -> Rights {
    let (write, net, sockets) = (write.clone(), net.clone(), sockets.clone());
    Rights { write, net, reach: *reach, sockets, ..Rights::default() }.normalised()
}

fn as_grant(rights: &Rights) -> Grant {
    let (write, net, sockets) = (rights.write.clone(), rights.net.clone(), rights.sockets.clone());
    Grant { write, net, reach: rights.reach, sockets }
}

fn covers(approved: &Grant, granted: &Grant) -> bool {
    let rights = |grant| Rights::default().with_grant(grant);
    rights(approved).covers(&rights(granted))
}

fn short(digest: &str) -> String {
    let cut = digest.chars().take(SHORT);
    cut.chain(['…']).collect()
}
