//! Lines at the prompt that are not for the model: `/help`, `!ls`.

use super::typed;
use crate::message::Action;
use crate::model::{Look, Model};

/// The way to send a line as text that would be none.
const AS_TEXT: &str = "a space before it sends the line as text";

/// Takes a line that is not for the model; returns false for a message.
///
/// A command is one line whose first word is `/` and letters: a path has another `/` in it.
pub(super) fn take(model: &mut Model, line: &str, actions: &mut Vec<Action>) -> bool {
    if line.contains('\n') {
        return false;
    }
    if let Some(command) = line.strip_prefix('!') {
        let message = format!("! is not there yet; outside: {}; {AS_TEXT}", outside(command.trim()));
        model.say(Look::Notice, &message);
        return true;
    }
    let Some(command) = line.strip_prefix('/') else { return false };
    let name = command.split_whitespace().next().unwrap_or_default();
    let is_name = command.starts_with(name) && name.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    if is_name {
        typed::run(model, '/', if name.is_empty() { "help" } else { command }, actions);
    }
    is_name
}

/// The command line that runs a command in the sandbox, to be pasted into a shell.
fn outside(command: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./=:@%+,".contains(c);
    match command {
        "" => "bailiwick sandbox -- COMMAND".to_owned(),
        plain if plain.chars().all(is_plain) => format!("bailiwick sandbox -- {plain}"),
        command => format!("bailiwick sandbox -- sh -c '{}'", command.replace('\'', r"'\''")),
    }
}
