//! The present worker of an agent, as published within the supervisor for sessions' sockets and the user's shells.

use std::collections::BTreeMap;

use gate::StandingRights;
use ipc::confinement::{Confinement, Environment, Tier};
use ipc::id::{AgentId, ConversationId, Generation};
use ipc::path::WirePath;
use protocol::approval::ApprovalMode;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::machine::SessionWorker;

/// Present worker of an agent, with all data for starting a process in the same confinement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    pub session: ConversationId,
    pub agent: AgentId,
    pub generation: Generation,
    pub pid: u32,
    pub tier: Tier,
    /// Approval mode, which decides about calls that need more access.
    pub mode: ApprovalMode,
    /// True if no flag of the user widens the worker's access.
    pub is_fixed: bool,
    /// Private cache directory, by which readers summarise the access. A summary omits defaults, which bincode rejects.
    pub caches: Option<WirePath>,
    /// Digest of the worker's access and rules, as logged.
    pub ruleset_digest: String,
    /// Confinement, without environment variables.
    pub confinement: Confinement,
}

pub type Lives = BTreeMap<AgentId, Live>;

pub(in crate::engine::driver) struct LiveEntry {
    agent: AgentId,
    lives: watch::Sender<Lives>,
}

impl LiveEntry {
    pub(in crate::engine::driver) const fn new(agent: AgentId, lives: watch::Sender<Lives>) -> Self {
        Self { agent, lives }
    }

    pub(in crate::engine::driver) fn publish(
        &self,
        session: &ConversationId,
        worker: &SessionWorker,
        standing: &StandingRights,
        ruleset_digest: String,
    ) {
        let Some(started) = worker.serving() else { return self.withdraw() };
        let confinement = worker.confinement();
        let live = Live {
            session: session.clone(),
            agent: self.agent.clone(),
            generation: started.generation,
            pid: started.pid,
            tier: started.ruleset.tier,
            mode: standing.mode(),
            is_fixed: standing.is_fixed(),
            caches: confinement.environment.caches.clone(),
            ruleset_digest,
            confinement: Confinement { environment: Environment::default(), ..confinement.clone() },
        };
        self.lives.send_modify(|lives| drop(lives.insert(self.agent.clone(), live)));
    }

    pub(in crate::engine::driver) fn withdraw(&self) {
        self.lives.send_modify(|lives| drop(lives.remove(&self.agent)));
    }
}
