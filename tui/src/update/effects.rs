//! Reports of changed settings. They are shown above the prompt, not in the transcript.

use ipc::id::AgentId;
use protocol::event::EventKind;

use crate::model::{AgentView, Look, Model, Pending, access};

/// Returns a line about the setting that an event changed; `None` if the event changed no setting.
pub(super) fn told(view: &AgentView, kind: &EventKind) -> Option<String> {
    // The person chose the access of the turn; after the turn, the previous access returns.
    let until = view.session.until.as_ref();
    let is_asked_for = matches!(view.session.pending, Some(Pending::Mode(_)));
    match kind {
        EventKind::GrantRevoked { id } => Some(format!("no longer approved for this session: {id}")),
        EventKind::ModeChanged { mode }
            if until.is_some_and(|until| until.explains_mode(*mode, is_asked_for)) =>
        {
            None
        }
        EventKind::ModeChanged { mode } => Some(format!("mode: {mode}")),
        EventKind::RightsChanged(changed)
            if until.is_some_and(|until| {
                changed.rights.value().is_some_and(|rights| until.explains_rights(rights))
            }) =>
        {
            None
        }
        // A change of the mode also changes the rights, so this line replaces the one about the mode, and repeats it.
        EventKind::RightsChanged(changed) => {
            Some(format!("mode: {} · access: {}", view.session.mode, access::recorded(&changed.rights)))
        }
        _ => None,
    }
}

pub(super) fn tell(model: &mut Model, agent: &AgentId, effect: Option<String>) {
    match effect {
        Some(text) if model.agents.shown_id() == agent => model.note(Look::Notice, &text),
        Some(text) => model.agents.of(agent).say(Look::Notice, &text),
        None => {}
    }
}
