//! What a session tells its own user of the worker that it has now.

use std::collections::BTreeMap;

use ipc::confinement::{Confinement, Environment, Tier};
use ipc::id::{AgentId, ConversationId, Generation};
use ipc::path::WirePath;
use protocol::approval::ApprovalMode;
use serde::{Deserialize, Serialize};

use super::{AgentRun, Shared};

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
    /// What names the ruleset, as in the log.
    pub ruleset_digest: String,
    /// What it is confined by. No variable of its environment is told.
    pub confinement: Confinement,
}

/// The agents of a session that have a worker just now.
pub type Lives = BTreeMap<AgentId, Live>;

impl AgentRun {
    /// Lets it be known which worker serves.
    pub(super) fn publish(&self, shared: &Shared, ruleset_digest: String) {
        let Some(worker) = self.worker.serving() else { return self.withdraw_live() };
        let live = Live {
            session: shared.conversation.clone(),
            agent: self.sink.agent().clone(),
            generation: worker.generation,
            pid: worker.pid,
            tier: worker.ruleset.tier,
            mode: self.agent.standing().mode,
            is_fixed: self.agent.standing().is_fixed,
            caches: self.worker.confinement().environment.caches.clone(),
            ruleset_digest,
            confinement: Confinement {
                environment: Environment::default(),
                ..self.worker.confinement().clone()
            },
        };
        self.live.send_modify(|lives| drop(lives.insert(self.sink.agent().clone(), live)));
    }

    /// Lets it be known that none serves.
    pub(super) fn withdraw_live(&self) {
        self.live.send_modify(|lives| drop(lives.remove(self.sink.agent())));
    }
}
