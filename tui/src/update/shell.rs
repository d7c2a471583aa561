//! `!COMMAND` at the prompt: a shell command of the person. While a turn runs, it is queued like a message.

use super::turns;
use crate::message::Action;
use crate::model::{Look, Model, Outgoing};

pub(super) fn run(model: &mut Model, command: &str, actions: &mut Vec<Action>) {
    if command.is_empty() {
        let usage = "!COMMAND runs a command of your own in the sandbox, and the model reads the output with your next message; a space before ! sends the line as text";
        return model.answer(Look::Notice, usage);
    }
    if !model.agents.shown_id().is_top_level() {
        let why = "your own commands go to the main agent: :agent 1 switches there";
        return model.answer(Look::Error, why);
    }
    model.agents.shown_mut().transcript.follow();
    let message = Outgoing { text: format!("!{command}"), is_command: true, ..Outgoing::default() };
    turns::send(model, model.now, message, actions);
}
