//! Commands at the prompt, which are not sent to the language model: `/help`, `!ls`.

use super::{shell, typed};
use crate::message::Action;
use crate::model::Model;

/// Executes a line if it is a command. Returns false if it is a message for the language model.
///
/// A command is a single line that begins with `/`. Its first word consists of letters, or names an MCP server's prompt
/// or a custom command of the person. A path contains another `/`.
pub(super) fn take(model: &mut Model, line: &str, actions: &mut Vec<Action>) -> bool {
    if line.contains('\n') {
        return false;
    }
    if let Some(command) = line.strip_prefix('!') {
        shell::run(model, command.trim(), actions);
        return true;
    }
    let Some(command) = line.strip_prefix('/') else { return false };
    let name = command.split_whitespace().next().unwrap_or_default();
    let is_word = name.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let is_listed = model.start.own_command(name).is_some() || model.prompts.find(name).is_some();
    let is_name = command.starts_with(name) && (is_word || is_listed);
    if is_name {
        typed::run(model, '/', if name.is_empty() { "help" } else { command }, actions);
    }
    is_name
}
