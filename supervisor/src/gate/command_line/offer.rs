//! The prefix that an approval card offers.

use super::parse::{SimpleCommand, simple_commands};
use super::{check_prefix, covers, programs};

/// The prefix that is offered for editing with a command, or nothing where no single prefix would cover it, or where one would
/// cover far more than it says: interpreters, wrappers, evaluators.
pub fn offered_prefix(command: &str) -> Option<Vec<String>> {
    let commands = simple_commands(command)?;
    let mut offers = commands.iter().map(offer);
    let first = offers.next()??;
    let same = offers.all(|other| other.is_some_and(|other| other == first));
    let offered = first.to_vec();
    (same && covers(std::slice::from_ref(&offered), command)).then_some(offered)
}

fn offer(command: &SimpleCommand) -> Option<&[String]> {
    programs::telling(&command.words).filter(|words| check_prefix(words).is_ok())
}
