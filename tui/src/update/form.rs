//! Keys for filling in a form that an MCP server sent, and the notice about the person's answer.

use protocol::approval::{ReviewDecision, ServerRequest};
use protocol::event::ApprovalAnswered;

use super::approval::{answer, set_stage, text_rows};
use super::editing;
use crate::card::{Card, Stage};
use crate::commands::{Command, KeyMode};
use crate::keymap::Key;
use crate::message::Action;
use crate::model::{AgentView, Areas, Look, Model};
use crate::moment::UiTime;

pub(super) fn begin(model: &mut Model) {
    if model.cards.front().and_then(|card| card.form.as_ref()).is_some_and(|form| !form.is_empty()) {
        set_stage(model, Stage::Form);
        lay(model);
    }
}

/// Sends the values of the form. If a field is invalid, selects it and shows its error.
pub(super) fn send(model: &mut Model, at: UiTime, actions: &mut Vec<Action>) {
    let Some(card) = model.cards.front_mut().filter(|card| card.approvable(at).is_ok()) else { return };
    match card.form.as_mut().and_then(super::super::card::FormDraft::values) {
        Some(values) => answer(model, ReviewDecision::Filled { values }, actions),
        None => begin(model),
    }
}

pub(super) fn key(model: &mut Model, at: UiTime, key: Key) -> bool {
    let command = model.start.keymap.command(KeyMode::Form, key);
    let writing = model.start.keymap.command(KeyMode::Insert, key);
    let Some(form) = model.cards.front_mut().and_then(|card| card.form.as_mut()) else { return false };
    let takes_text = form.takes_text();
    let is_over = match (command, key.text()) {
        (Some(Command::NextField), _) => !form.go(true),
        (Some(Command::PreviousField), _) => {
            form.go(false);
            false
        }
        (Some(Command::Back), _) => true,
        (None, Some(' ')) if form.takes_several() => {
            form.toggle();
            false
        }
        (Some(Command::NextChoice), _) | (None, Some(' ')) if !takes_text => {
            form.choose(true);
            false
        }
        (Some(Command::PreviousChoice), _) if !takes_text => {
            form.choose(false);
            false
        }
        (_, text) => {
            let Some(editor) = form.editor_mut() else { return false };
            let changed = match (writing, text) {
                (Some(command), _) => editing::edit(editor, command),
                // Text beyond the size limit is ignored.
                (None, Some(c)) => editor.insert(c.encode_utf8(&mut [0; 4])).is_ok(),
                (None, None) => false,
            };
            if !changed {
                return false;
            }
            false
        }
    };
    if is_over {
        set_stage(model, Stage::Deciding);
        // Letters that were meant for the last field do not answer the request.
        if let Some(card) = model.cards.front_mut() {
            card.rearm(at);
        }
    }
    lay(model);
    true
}

fn lay(model: &mut Model) {
    let revision = model.next_revision();
    let area = Areas::now(model).card.unwrap_or_default();
    let keymap = &model.start.keymap;
    let Some(card) = model.cards.front_mut() else { return };
    let size = (area.width, text_rows(card, keymap, area));
    card.lay_form(revision, size);
}

pub(super) fn is_form(card: &Card) -> bool {
    matches!(*card.request, ServerRequest::ServerForm(_))
}

/// Reports the person's answer to an MCP server's form. Returns false if the approval request was not about a form.
pub(super) fn answered(view: &mut AgentView, answered: &ApprovalAnswered) -> bool {
    let Some(server) = answered.id.and_then(|id| view.asked_forms.remove(&id)) else { return false };
    let decision = match &answered.decision {
        ReviewDecision::Approved | ReviewDecision::Filled { .. } => "answered",
        ReviewDecision::Denied { .. } => "declined",
        ReviewDecision::Abort => "cancelled; turn stopped",
        ReviewDecision::Cancelled
        | ReviewDecision::ApprovedForTurn
        | ReviewDecision::ApprovedInPart { .. }
        | ReviewDecision::ApprovedForSession { .. } => "cancelled",
    };
    let cause = answered.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    view.say(Look::Notice, &format!("the question of the MCP server {server}: {decision}{cause}"));
    true
}
