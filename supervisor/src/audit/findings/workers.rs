//! Findings about the rights of workers, where the log has them as values: those of a sub-agent only ever narrow.

use std::collections::BTreeMap;

use ipc::event::{EventKind, SessionEvent, WorkerStarted};
use ipc::id::AgentId;
use ipc::path::WirePath;
use ipc::rights::{NamedRoot, Network, NetworkState, Rights, RightsSummary};

use super::{Finding, Rule, finding};
use crate::session::Tree;

/// A symbol for the private caches, whose path the log does not have. No root has this path, since none is relative.
const CACHES: &str = "caches";

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut known = KnownWorker::default();
    tree.events().filter_map(|event| known.take(event)).collect()
}

#[derive(Default)]
struct KnownWorker<'a> {
    project: Option<&'a WirePath>,
    /// The rights of each agent's worker just now.
    now: BTreeMap<&'a AgentId, Rights>,
    /// The write roots that each sub-agent was declared to have, as the host names them.
    declared: BTreeMap<&'a AgentId, &'a [WirePath]>,
    /// The most that each sub-agent may ever have: at first its parent's rights and its grant, then those of its first worker.
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
                self.declared.insert(&spawned.agent, &spawned.write);
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
        let caches = self.granted_caches(agent, &rights);
        let most = self.most.insert(agent, (Rule::OnlyNarrower, rights.clone()));
        let most = most.map(|(rule, mut most)| {
            most.write.extend(caches);
            (rule, most.normalised())
        });
        let (rule, most) = most.filter(|(_, most)| !most.covers(&rights))?;
        let than = if rule == Rule::WithinParent { "its parent and its grant" } else { "the worker before" };
        let text =
            format!("worker {} of agent {agent} has more rights than {than}: {summary}", started.generation);
        // Later workers are held to the rights that were within bounds.
        self.most.insert(agent, (rule, most));
        Some(finding(rule, agent, text))
    }
}

impl KnownWorker<'_> {
    /// The caches, where an approved plan gave them: a grant has their path, and a worker's rights their name. The one declared root
    /// that the worker's rights do not name is theirs, if it lies within the bounds.
    fn granted_caches(&self, agent: &AgentId, rights: &Rights) -> Option<WirePath> {
        let (_, most) = self.most.get(agent)?;
        let declared = self.declared.get(agent)?.iter();
        let mut unnamed = declared.filter(|root| !rights.allows_write(root));
        let caches = unnamed.next().filter(|_| unnamed.next().is_none())?;
        most.allows_write(caches).then(|| CACHES.into())
    }
}

/// Rights as far as they can be given: a private temp directory is an agent's own, and nobody gives it.
fn as_rights(summary: &RightsSummary, project: &WirePath) -> Rights {
    let write = summary.write.iter().filter_map(|root| match root {
        NamedRoot::Temp => None,
        NamedRoot::Project => Some(project.clone()),
        NamedRoot::Caches => Some(CACHES.into()),
        NamedRoot::Path(path) => Some(path.clone()),
    });
    let net = if summary.net == NetworkState::Off { Network::Off } else { Network::On };
    Rights { write: write.collect(), net, reach: summary.reach, ..Rights::default() }.normalised()
}
