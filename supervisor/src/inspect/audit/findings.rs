//! Findings: places where the events of a log do not agree on what its agents were allowed.
//!
//! A log whose chain holds may still tell of a supervisor that did not keep its rules: each rule is checked here by the events
//! alone. Logs of older schemas have the rights of a worker by their digest alone, so that workers are compared by digests too.

mod rights;
mod workers;

use ipc::id::AgentId;
use protocol::event::{EventKind, SessionEvent, SubAgentResult};
use serde::Serialize;

use super::account::parent_of;
use super::by_agent::EventsByAgent;
use crate::journal::session::Tree;

/// A place where the events of a log do not agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The rule that was not kept.
    pub rule: Rule,
    pub agent: AgentId,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rule {
    /// A sub-agent's first worker has the rights that the sub-agent was started with.
    DeclaredRights,
    /// A later worker has the same rights, unless a change of rights is logged.
    LoggedChange,
    /// A later worker of a sub-agent has no more rights than the one before.
    OnlyNarrower,
    /// A sub-agent's rights are within its parent's and its grant.
    WithinParent,
    ApprovedGrant,
    /// Each sub-agent with events was started by its parent.
    Started,
    /// Each sub-agent ends with one result.
    OneResult,
    /// No event of a sub-agent follows its result.
    EndsWithResult,
}

/// The findings of a log, by rule.
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
    found
}

fn finding(rule: Rule, agent: &AgentId, text: String) -> Finding {
    Finding { rule, agent: agent.clone(), text }
}

fn not_started(agent: &AgentId, events: &EventsByAgent<'_>) -> Option<Finding> {
    let starts = |event: &SessionEvent| matches!(&event.kind, EventKind::SubAgentSpawned(spawned) if spawned.agent == *agent);
    let first = events.about(agent).iter().find(|event| event.agent == *agent || starts(event))?;
    let text = format!("agent {agent} has events before any that says that it was started");
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
    // The supervisor looks at watched places again when every worker is gone, and puts what it finds down to the calls before.
    let is_late =
        |event: &&&SessionEvent| event.agent == *agent && !matches!(event.kind, EventKind::Restored { .. });
    let late = rest.filter(is_late).count();
    let unit = if late == 1 { "event" } else { "events" };
    let text = format!("agent {agent} has {late} {unit} after its result");
    (late > 0).then(|| finding(Rule::EndsWithResult, agent, text))
}

/// Sub-agents that were started, without exactly one result each. One that lives when the log ends has none yet.
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
            0 if has_ended() => format!("agent {agent} was started, and its end is not logged"),
            0 | 1 => return None,
            several => format!("agent {agent} has {several} results"),
        };
        Some(finding(Rule::OneResult, agent, text))
    });
    counted.collect()
}
