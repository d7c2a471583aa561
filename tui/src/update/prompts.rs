//! Prompts that MCP servers offer. Their text is placed at the person's prompt and never sent automatically.

use ipc::id::AgentId;
use protocol::frontend::UserActionKind;
use protocol::server_prompt::ExpandedPrompt;

use crate::message::Action;
use crate::model::{Editor, Look, Mode, Model};

pub(super) fn run(model: &mut Model, sign: char, line: &str, actions: &mut Vec<Action>) -> bool {
    let line = line.trim_start();
    let name = line.split_whitespace().next().unwrap_or_default();
    let Some(command) = model.prompts.find(name) else { return false };
    let rest = line.strip_prefix(name).unwrap_or_default();
    match command.wanted(rest) {
        Ok(wanted) => {
            let waits = format!("the prompt {name} waits for its text from the MCP server {}", wanted.server);
            actions.push(Action::User(AgentId::root(), UserActionKind::ExpandPrompt(wanted)));
            model.answer(Look::Notice, &waits);
        }
        Err(why) => {
            let mistake = format!("{name} {why}: {sign}{}", command.typed);
            model.answer(Look::Error, &mistake);
            if model.prompt.is_empty() {
                model.prompt = Editor::with(format!("/{} ", line.trim_end()));
                model.mode = Mode::Insert;
            }
        }
    }
    true
}

/// Appends the text of an MCP server's prompt to the text at the person's prompt.
pub(super) fn expanded(model: &mut Model, expanded: ExpandedPrompt) {
    let ExpandedPrompt { server, name, text, failed } = expanded;
    let of = format!("{server}:{name}");
    let Some(text) = text else {
        let why = failed.unwrap_or_default();
        return model.answer(Look::Error, &format!("cannot get the prompt {of}: {why}"));
    };
    let written = model.prompt.whole();
    let between = match text.chars().next() {
        _ if !written.is_empty() => "\n",
        // A line that begins with one of these would be a command of the person.
        Some('/' | '!' | ':') => " ",
        _ => "",
    };
    let mut editor = Editor::with(written);
    match editor.insert(&format!("{between}{text}")) {
        Ok(()) => {
            model.prompt = editor;
            model.palette.close();
            model.answer(
                Look::Notice,
                &format!("the text of {of} is at your prompt: read or change the text, Enter sends it"),
            );
        }
        Err(error) => model.answer(Look::Error, &format!("cannot use the prompt {of}: {error}")),
    }
}
