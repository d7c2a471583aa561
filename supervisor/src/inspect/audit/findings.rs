//! Findings: contradictions between the events of a log about the access of its agents.
//!
//! An intact log can still show a supervisor that broke its rules. Logs of older versions have only a digest of each
//! worker's access, so digests are compared too.

mod guests;
mod rights;
mod workers;

use ipc::id::AgentId;
use protocol::event::{EventKind, SessionEvent, SubAgentResult};
use serde::Serialize;

use super::account::parent_of;
use super::by_agent::EventsByAgent;
use crate::journal::session::Tree;

/// A contradiction between events of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub rule: Rule,
    pub agent: AgentId,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rule {
    /// A sub-agent's first worker has the access with which the sub-agent was started.
    DeclaredRights,
    /// A later worker has the same access as the previous one, unless the log has a change of access between them.
    LoggedChange,
    /// A later worker of a sub-agent has no more access than the sub-agent's previous worker.
    OnlyNarrower,
    /// A sub-agent has no more access than its parent has, plus the sub-agent's grant.
    WithinParent,
    ApprovedGrant,
    /// Each sub-agent that has events was started by its parent.
    Started,
    /// Each sub-agent ends with one result.
    OneResult,
    /// No event of a sub-agent follows the sub-agent's result.
    EndsWithResult,
    /// Each guest ends once, before its agent and the session end.
    GuestEnds,
}

pub(super) fn findings(tree: &Tree, events: &EventsByAgent<'_>) -> Vec<Finding> {
    let mut found = rights::findings(tree, events);
    for more in workers::findings(tree) {
        if !found.iter().any(|other| (other.rule, &other.agent) == (more.rule, &more.agent)) {
            found.push(more);
        }
    }
    for agent in tree.agents().into_iter().filter(|agent| !agent.is_top_level()) {
        found.extend(not_started(agent, events));
        found.extend(after_result(agent, events));
    }
    found.extend(results(tree, events));
    found.extend(guests::findings(tree));
    found
}

fn finding(rule: Rule, agent: &AgentId, text: String) -> Finding {
    Finding { rule, agent: agent.clone(), text }
}

fn not_started(agent: &AgentId, events: &EventsByAgent<'_>) -> Option<Finding> {
    let starts = |event: &SessionEvent| matches!(&event.kind, EventKind::SubAgentSpawned(spawned) if spawned.agent == *agent);
    let first = events.about(agent).iter().find(|event| event.agent == *agent || starts(event))?;
    let text = format!("agent {agent} has events before its start");
    (!starts(first)).then(|| finding(Rule::Started, agent, text))
}

fn result_of<'a>(event: &'a SessionEvent, agent: &AgentId) -> Option<&'a SubAgentResult> {
    match &event.kind {
        EventKind::SubAgentResult(result) if result.agent == *agent => Some(result),
        _ => None,
    }
}

fn after_result(agent: &AgentId, events: &EventsByAgent<'_>) -> Option<Finding> {
    let rest = events.about(agent).iter().skip_while(|event| result_of(event, agent).is_none());
    // After the last worker's end, the supervisor checks the protected files again, and assigns changes to calls.
    let is_late =
        |event: &&&SessionEvent| event.agent == *agent && !matches!(event.kind, EventKind::Restored { .. });
    let late = rest.filter(is_late).count();
    let unit = if late == 1 { "event" } else { "events" };
    let text = format!("agent {agent} has {late} {unit} after its result");
    (late > 0).then(|| finding(Rule::EndsWithResult, agent, text))
}

/// Returns a finding for each sub-agent that has not exactly one result. A sub-agent that still runs at the log's end
/// needs none.
fn results(tree: &Tree, events: &EventsByAgent<'_>) -> Vec<Finding> {
    let spawned = tree.events().filter_map(|event| match &event.kind {
        EventKind::SubAgentSpawned(spawned) => Some((event.id, &spawned.agent)),
        _ => None,
    });
    let counted = spawned.filter_map(|(started, agent)| {
        let results = |agent: &AgentId| {
            let after = events.about(agent).iter().filter(|event| event.id > started);
            after.filter(|event| result_of(event, agent).is_some()).count()
        };
        let has_ended =
            || events.ends_after(started) || parent_of(agent).is_some_and(|parent| results(&parent) > 0);
        let text = match results(agent) {
            0 if has_ended() => format!("agent {agent} was started, but its end is not logged"),
            0 | 1 => return None,
            several => format!("agent {agent} has {several} results"),
        };
        Some(finding(Rule::OneResult, agent, text))
    });
    counted.collect()
}
