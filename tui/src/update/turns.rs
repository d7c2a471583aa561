//! Messages of the user, and the turns that they begin.

use ipc::event::{EndReason, TurnFinished};
use ipc::frontend::UserActionKind;

use super::tell;
use crate::message::Action;
use crate::model::{Editor, Look, Model, Outgoing, account, summary, tells_apart};
use crate::moment::Moment;
use crate::text::SafeText;

/// Sends a message, or lets it wait for the turn to end.
pub(super) fn send(model: &mut Model, at: Moment, message: Outgoing, actions: &mut Vec<Action>) {
    if model.session.over {
        model.say(Look::Error, "the session is over; :q leaves");
    } else if model.turn.is_running() {
        model.queue.push_back(message);
    } else {
        model.turn.begin(at);
        let Outgoing { text, images } = message;
        tell(actions, UserActionKind::Prompt { text, images });
    }
}

/// Asks for the end of the turn that runs.
pub(super) fn interrupt(model: &mut Model, actions: &mut Vec<Action>) {
    if model.turn.is_running() && !model.turn.interrupted {
        model.turn.interrupted = true;
        tell(actions, UserActionKind::Interrupt);
    }
}

/// A turn is over: the next message that waits goes out, unless the user or an error ended the turn.
pub(super) fn finished(model: &mut Model, turn: &TurnFinished, actions: &mut Vec<Action>) {
    model.turn.end();
    model.turn.account = account(turn);
    model.session.account += model.turn.account;
    if let Some(message) = turn.message.as_deref().filter(|_| tells_apart(turn)) {
        tell_failure(model, Look::Error, message);
    }
    model.say(Look::Turn, &summary(turn));
    if turn.reason == EndReason::Done && !model.turn.interrupted {
        if let Some(message) = model.queue.pop_front() {
            send(model, model.now, message, actions);
        }
    } else {
        give_back(model);
    }
}

/// Tells that a request failed: one line, in which the next attempt replaces the one before.
pub(super) fn tell_failure(model: &mut Model, look: Look, text: &str) {
    if let Some(part) = model.turn.retry.and_then(|at| model.transcript.block_mut(at)?.parts.first_mut()) {
        part.replace(SafeText::prose(text), look);
    } else {
        model.say(look, text);
        model.turn.retry = model.transcript.last();
    }
}

/// What waited goes back to the prompt, before what is being written: nothing is sent that was meant for another moment.
fn give_back(model: &mut Model) {
    if model.queue.is_empty() {
        return;
    }
    let draft = Outgoing { text: model.prompt.take(), images: std::mem::take(&mut model.attached) };
    let mut texts = Vec::new();
    for Outgoing { text, images } in model.queue.drain(..).chain([draft]) {
        texts.extend(Some(text).filter(|text| !text.is_empty()));
        model.attached.extend(images);
    }
    model.prompt = Editor::with(texts.join("\n"));
    model.say(Look::Notice, "queued messages moved back to the prompt");
}
