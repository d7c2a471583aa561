//! What the agent runs of a session share: there is one of each, whoever acts.

use ipc::event::{EventKind, Observer as Witness};
use ipc::frontend::{UiEvent, UiEventKind};
use ipc::id::{AgentCall, AgentId, CallId, ConversationId};
use ipc::tool::ToolCall;
use tokio::sync::mpsc;

use super::{ChangeTracker, Guard, SessionError};
use crate::session::{Flushed, Flusher, SessionLog};

/// What exists once in a session.
pub struct Shared {
    /// The session.
    pub conversation: ConversationId,
    /// The log.
    pub log: SessionLog,
    /// Where events go.
    pub ui: mpsc::UnboundedSender<UiEvent>,
    /// The change set, where it is wanted.
    pub changes: Option<ChangeTracker>,
    /// What the host runs later, where an agent may write in the project.
    pub tripwire: Option<Guard>,
    flusher: Flusher,
}

impl Shared {
    /// What a session begins with.
    pub fn new(
        conversation: ConversationId,
        log: SessionLog,
        ui: mpsc::UnboundedSender<UiEvent>,
        changes: Option<ChangeTracker>,
        tripwire: Option<Guard>,
    ) -> Self {
        Self { conversation, flusher: log.flusher(), log, ui, changes, tripwire }
    }

    /// Hands an event of an agent to the kernel; the front end's own form of it.
    pub(super) fn record(
        &mut self,
        agent: &AgentId,
        kind: EventKind,
        observed_by: Witness,
    ) -> Result<UiEventKind, SessionError> {
        Ok(UiEventKind::Logged(Box::new(self.log.append(agent, observed_by, kind)?)))
    }

    /// Has everything that was recorded so far written to the disk, beside the main loop.
    pub(super) fn flush(&mut self) -> Flushed {
        self.flusher.flush()
    }

    /// Tells the front end. One that is gone misses nothing: the log has it all.
    pub(super) fn show(&self, agent: &AgentId, kind: UiEventKind) {
        let conversation_id = self.conversation.clone();
        let _ = self.ui.send(UiEvent { conversation_id, agent: agent.clone(), kind });
    }

    /// True while nothing may write: the base is being taken, or the tripwire set.
    pub(super) fn is_preparing(&self) -> bool {
        self.changes.as_ref().is_some_and(ChangeTracker::base_is_open)
            || self.tripwire.as_ref().is_some_and(Guard::is_setting)
    }

    /// Notes that a worker was sent a call.
    pub(super) fn sent(&mut self, agent: &AgentId, call: CallId, tool: &ToolCall) {
        if let (Some(guard), true) = (&mut self.tripwire, tool.may_write()) {
            guard.sent(AgentCall { agent: agent.clone(), call });
        }
    }

    /// Has the tripwire looked at after a call that may have written; true if somebody looks, and will say so.
    pub(super) fn look_after(&mut self, agent: &AgentId, call: CallId) -> bool {
        let call = AgentCall { agent: agent.clone(), call };
        self.tripwire.as_mut().is_some_and(|guard| guard.look_after(call))
    }
}
