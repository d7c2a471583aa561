//! Prefixes that a request for a command offers.

use super::parse::{SimpleCommand, simple_commands};
use super::{check_prefix, covers, programs};

/// Returns the prefix to offer for a command; a person may edit it. `None` if no single prefix covers the command, or
/// if the prefix would cover far more than it says (interpreters, wrappers, evaluators).
pub fn offered_prefix(command: &str) -> Option<Vec<String>> {
    let commands = simple_commands(command)?;
    let mut offers = commands.iter().map(offer);
    let first = offers.next()??;
    let same = offers.all(|other| other.is_some_and(|other| other == first));
    let offered = first.to_vec();
    (same && covers(std::slice::from_ref(&offered), command)).then_some(offered)
}

/// Returns the prefixes to offer for a compound command that no single prefix covers, one for each different part.
/// Empty if these prefixes would not cover the whole command.
pub fn offered_parts(command: &str) -> Vec<Vec<String>> {
    let Some(commands) = simple_commands(command).filter(|_| offered_prefix(command).is_none()) else {
        return Vec::new();
    };
    let mut parts: Vec<Vec<String>> = Vec::new();
    for words in commands.iter().filter_map(offer) {
        if commands.len() > 1 && !parts.iter().any(|known| known == words) {
            parts.push(words.to_vec());
        }
    }
    if covers(&parts, command) { parts } else { Vec::new() }
}

/// True if a simple command in `command` begins with the words of the prefix.
pub fn begins_a_part(prefix: &[String], command: &str) -> bool {
    let commands = simple_commands(command).unwrap_or_default();
    !prefix.is_empty() && commands.iter().any(|part| part.words.starts_with(prefix))
}

fn offer(command: &SimpleCommand) -> Option<&[String]> {
    programs::telling(&command.words).filter(|words| check_prefix(words).is_ok())
}
