//! Findings about the access of workers in the log. The access of a sub-agent's workers may only shrink.

use std::collections::BTreeMap;

use ipc::id::AgentId;
use ipc::path::WirePath;
use ipc::rights::{NamedRoot, Rights, RightsSummary};
use protocol::event::{EventKind, SessionEvent, WorkerStarted};

use super::{Finding, Rule, finding};
use crate::journal::session::Tree;

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut known = KnownWorker::default();
    tree.events().filter_map(|event| known.take(event)).collect()
}

#[derive(Default)]
struct KnownWorker<'a> {
    project: Option<&'a WirePath>,
    now: BTreeMap<&'a AgentId, Rights>,
    /// Maximum access of a sub-agent's next worker: the parent's access plus the grant, then the last valid worker's
    /// access.
    most: BTreeMap<&'a AgentId, (Rule, Rights)>,
}

impl<'a> KnownWorker<'a> {
    fn take(&mut self, event: &'a SessionEvent) -> Option<Finding> {
        match &event.kind {
            EventKind::SessionStarted(started) => self.project = Some(&started.project),
            EventKind::SubAgentSpawned(spawned) => {
                let parent = self.now.get(&event.agent)?;
                let most = parent.with_grant(&spawned.grant.clone().unwrap_or_default());
                self.most.insert(&spawned.agent, (Rule::WithinParent, most));
            }
            EventKind::WorkerStarted(started) if started.one_shot.is_none() => {
                return self.start_worker(&event.agent, started);
            }
            _ => {}
        }
        None
    }

    fn start_worker(&mut self, agent: &'a AgentId, started: &WorkerStarted) -> Option<Finding> {
        let summary = started.rights.value()?;
        let rights = as_rights(summary, self.project?);
        self.now.insert(agent, rights.clone());
        if agent.is_top_level() {
            return None;
        }
        let most = self.most.insert(agent, (Rule::OnlyNarrower, rights.clone()));
        let (rule, most) = most.filter(|(_, most)| !most.covers(&rights))?;
        let than = if rule == Rule::WithinParent {
            "its parent agent and the approval allow"
        } else {
            "the agent's worker before"
        };
        let text =
            format!("worker {} of agent {agent} has more access than {than}: {summary}", started.generation);
        // Later workers are compared with the maximum, not with this worker.
        self.most.insert(agent, (rule, most));
        Some(finding(rule, agent, text))
    }
}

/// Returns the access that an agent can pass on to a sub-agent. Leaves out private temporary directories and caches,
/// because each agent has its own.
fn as_rights(summary: &RightsSummary, project: &WirePath) -> Rights {
    let write = summary.write.iter().filter_map(|root| match root {
        NamedRoot::Temp | NamedRoot::Caches | NamedRoot::System => None,
        NamedRoot::Project => Some(project.clone()),
        NamedRoot::Path(path) => Some(path.clone()),
    });
    let net = summary.net.clone();
    let (write, sockets) = (write.collect(), summary.sockets.clone());
    Rights { write, net, reach: summary.reach, sockets, ..Rights::default() }.normalised()
}
