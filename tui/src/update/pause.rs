//! Pause of a session while the disk with its log is full.

use ipc::id::EventId;
use ipc::path::WirePath;
use protocol::frontend::UserActionKind;

use super::{call, tell};
use crate::commands::{Command, KeyMode};
use crate::message::{Action, Reason};
use crate::model::{Look, Model};

/// Shows that the session is paused until the disk has free space. Called after each failed attempt to write the log.
pub(super) fn paused(
    model: &mut Model,
    path: &WirePath,
    free: Option<u64>,
    last: EventId,
    actions: &mut Vec<Action>,
) {
    let free = free.map_or_else(String::new, |free| format!(" ({} KiB free)", free / 1024));
    if model.paused {
        model.remark = Some(format!("the disk is still full{free}"));
        return;
    }
    model.paused = true;
    let send = model.start.keymap.hint(KeyMode::Insert, Command::Submit);
    model.say(Look::Error, &format!("paused: cannot write the log {path}: the disk is full{free}"));
    model.say(
        Look::Notice,
        &format!(
            "everything up to event {last} is saved; the agents are paused\n\
             free some space: the session continues by itself, or {send} retries · :q ends the session"
        ),
    );
    call(model, Reason::Paused, actions);
}

pub(super) fn goes_on(model: &mut Model) {
    model.paused = false;
    model.remark = None;
    model.say(Look::Notice, "the log can be written again: the session continues, and nothing was lost");
}

/// Requests another attempt to write the log. Returns true if the session is paused.
pub(super) fn retry(model: &Model, actions: &mut Vec<Action>) -> bool {
    if model.paused {
        tell(model, actions, UserActionKind::RetryLog);
    }
    model.paused
}
