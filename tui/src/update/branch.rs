//! Git branch of the project. It is read again after events that may have changed it, but not while the agent is idle.

use ipc::id::AgentId;
use protocol::event::EventKind;
use protocol::frontend::UserActionKind;

use crate::message::Action;
use crate::model::{Call, Model};

/// Requests the branch after an event that may have changed it: the main agent's worker started, or a command ended.
pub(super) fn follow(model: &mut Model, agent: &AgentId, kind: &EventKind, actions: &mut Vec<Action>) {
    let may_change = match kind {
        EventKind::WorkerStarted(started) => started.one_shot.is_none() && *agent == AgentId::root(),
        EventKind::ToolCallFinished { call, .. } => {
            model.agents.of(agent).calls.get(call).is_some_and(Call::is_command)
        }
        _ => false,
    };
    if may_change {
        actions.push(Action::User(AgentId::root(), UserActionKind::FindBranch));
    }
}
