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
    #[error(
        "`{tool}` was not run: got no JSON object ({reason}), expected one with the arguments {arguments}"
    )]
    NotAnObject {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
        /// The arguments that it takes.
        arguments: String,
    },
    /// An argument does not fit.
    #[error("`{tool}` was not run: {}{reason}. Its arguments are {arguments}", place(.field.as_deref()))]
    Argument {
        /// The tool.
        tool: String,
        /// Where, as a path: `edits[1].old_string`; absent where the arguments as a whole do not fit.
        field: Option<String>,
        /// What was got, and what was expected.
        reason: String,
        /// The arguments that it takes.
        arguments: String,
    },
}

fn place(field: Option<&str>) -> String {
    field.map_or_else(String::new, |field| format!("argument `{field}`: "))
}
