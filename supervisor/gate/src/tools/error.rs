//! Errors in a model's call, with the information to correct it.

/// A call that cannot be carried out as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolUseError {
    /// No tool has this name.
    #[error("there is no tool named `{name}`; the tools are: {known}")]
    Unknown {
        name: String,
        /// The names of all tools, separated by commas.
        known: String,
    },
    /// The arguments are not a JSON object.
    #[error(
        "`{tool}` was not run: got no JSON object ({reason}), expected one with the arguments {arguments}"
    )]
    NotAnObject {
        tool: String,
        reason: String,
        /// The arguments that the tool expects.
        arguments: String,
    },
    /// An argument is invalid.
    #[error("`{tool}` was not run: {}{reason}. Its arguments are {arguments}", place(.field.as_deref()))]
    Argument {
        tool: String,
        /// The path of the argument, such as `edits[1].old_string`. Nothing if the arguments as a whole are invalid.
        field: Option<String>,
        /// The actual value, and the expected one.
        reason: String,
        /// The arguments that the tool expects.
        arguments: String,
    },
}

fn place(field: Option<&str>) -> String {
    field.map_or_else(String::new, |field| format!("argument `{field}`: "))
}
