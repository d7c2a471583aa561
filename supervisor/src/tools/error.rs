//! What is wrong with a call that the model made, in words from which it can mend it.

/// A call that cannot be carried out as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolUseError {
    /// There is no such tool.
    #[error("there is no tool named `{name}`; the tools are: {known}")]
    Unknown {
        /// What was called.
        name: String,
        /// The names that there are, joined by commas.
        known: String,
    },
    /// The arguments are no JSON object.
    #[error("the arguments of `{tool}` are not a JSON object: {reason}; expected {expected}")]
    NotAnObject {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
        /// The arguments that it takes.
        expected: String,
    },
    /// An argument does not fit.
    #[error("`{tool}` was not run: argument `{field}`: {reason}; expected {expected}")]
    Argument {
        /// The tool.
        tool: String,
        /// Where, as a path: `edits[1].old_string`.
        field: String,
        /// What was got, and what would have fitted.
        reason: String,
        /// The arguments that it takes.
        expected: String,
    },
}
