//! The worker that a session has now, as it tells its own user.

use std::collections::BTreeMap;

use gate::StandingRights;
use ipc::confinement::{Confinement, Environment, Tier};
use ipc::id::{AgentId, ConversationId, Generation};
use ipc::path::WirePath;
use protocol::approval::ApprovalMode;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::machine::SessionWorker;

/// An agent's worker as it serves now, and what it is confined by: enough to try the very same confinement beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    pub session: ConversationId,
    pub agent: AgentId,
    /// The generation of the worker.
    pub generation: Generation,
    /// The worker's process id.
    pub pid: u32,
    pub tier: Tier,
    /// Handling of a call beyond the rights.
    pub mode: ApprovalMode,
    /// True if no flag of the user's widens its rights.
    pub is_fixed: bool,
    /// Its private caches, by which its rights are told. The summary itself leaves out what is usual, and bincode
    /// reads no such value.
    pub caches: Option<WirePath>,
    /// Digest of the ruleset, as in the log.
    pub ruleset_digest: String,
    /// Its confinement, without the variables of its environment.
    pub confinement: Confinement,
}

/// The agents of a session that have a worker just now.
pub type Lives = BTreeMap<AgentId, Live>;

/// The entry of one agent among those that have a worker.
pub(in crate::engine::driver) struct LiveEntry {
    agent: AgentId,
    lives: watch::Sender<Lives>,
}

impl LiveEntry {
    pub(in crate::engine::driver) const fn new(agent: AgentId, lives: watch::Sender<Lives>) -> Self {
        Self { agent, lives }
    }

    /// Publishes the worker that serves, of an agent with these rights.
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
            mode: standing.mode,
            is_fixed: standing.is_fixed,
            caches: confinement.environment.caches.clone(),
            ruleset_digest,
            confinement: Confinement { environment: Environment::default(), ..confinement.clone() },
        };
        self.lives.send_modify(|lives| drop(lives.insert(self.agent.clone(), live)));
    }

    /// Removes the entry: no worker serves.
    pub(in crate::engine::driver) fn withdraw(&self) {
        self.lives.send_modify(|lives| drop(lives.remove(&self.agent)));
    }
}
