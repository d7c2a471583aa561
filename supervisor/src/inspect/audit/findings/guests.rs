//! Findings about guests: each guest must end exactly once, before its agent ends.

use std::collections::BTreeSet;

use ipc::id::{AgentId, GuestId};
use protocol::event::EventKind;

use super::{Finding, Rule, finding};
use crate::journal::session::Tree;

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut open: BTreeSet<(&AgentId, GuestId)> = BTreeSet::new();
    let mut found = Vec::new();
    let mut find = |agent: &AgentId, guest: GuestId, what: &str| {
        found.push(finding(Rule::GuestEnds, agent, format!("guest {guest} of agent {agent} {what}")));
    };
    for event in tree.events() {
        let agent = &event.agent;
        match &event.kind {
            EventKind::GuestStarted(started) if !open.insert((agent, started.guest)) => {
                find(agent, started.guest, "started twice without an end");
            }
            EventKind::GuestEnded(ended) if !open.remove(&(agent, ended.guest)) => {
                find(agent, ended.guest, "has an end without a start");
            }
            EventKind::SubAgentResult(result) => {
                for (agent, guest) in open.extract_if(.., |(agent, _)| **agent == result.agent) {
                    find(agent, guest, "has not ended before its agent");
                }
            }
            EventKind::Result(_) => {
                for (agent, guest) in std::mem::take(&mut open) {
                    find(agent, guest, "has not ended before the session");
                }
            }
            _ => {}
        }
    }
    found
}
