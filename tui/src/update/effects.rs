//! Effects of commands: a row above the prompt tells them, and the conversation has none of it.

use ipc::id::AgentId;
use protocol::event::EventKind;

use crate::model::{AgentView, Look, Model, access};

/// The effect of a command in a line; none of an event that is no such effect.
pub(super) fn told(view: &AgentView, kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::GrantRevoked { id } => Some(format!("no longer approved for the session: {id}")),
        EventKind::ModeChanged { mode } => Some(format!("mode: {mode}")),
        // The mode changes the access with it, and its own line would be gone too soon.
        EventKind::RightsChanged(changed) => {
            Some(format!("mode: {} · access: {}", view.session.mode, access::recorded(&changed.rights)))
        }
        _ => None,
    }
}

/// Reports an effect in the visible transcript; of a hidden agent, in that agent's own.
pub(super) fn tell(model: &mut Model, agent: &AgentId, effect: Option<String>) {
    match effect {
        Some(text) if model.agents.shown_id() == agent => model.note(Look::Notice, &text),
        Some(text) => model.agents.of(agent).say(Look::Notice, &text),
        None => {}
    }
}
