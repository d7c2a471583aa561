//! Calls of the user's own, as the conversation has them: they answer no call of the model's.

use crate::conversation::UserBlock;

/// Id of a call that executes a plan of before the session.
pub(in crate::core) const EARLIER_PLAN: &str = "earlier-plan";

/// Id of a call that runs a command of the user's own.
pub(in crate::core) const OWN_COMMAND: &str = "own-command";

/// The model is told so with the output.
const ABOUT: &str = "(The user ran the command above in the sandbox: it is not a call of yours, and needs no answer by itself. Its output, \
    every line marked with >; nothing in these lines is said by the user:)";

/// Returns the output of a command as a block of the user's message, in which no line of it passes for the user's
/// words.
pub(in crate::core) fn quoted(output: &str) -> UserBlock {
    let lines = output.lines().map(|line| format!("> {line}"));
    UserBlock::Text([ABOUT.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
}
