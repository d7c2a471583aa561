#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolUseError {
    #[error("there is no tool named `{name}`; the tools are: {known}")]
    Unknown { name: String, known: String },
    #[error(
        "`{tool}` was not run: got no JSON object ({reason}), expected one with the arguments {arguments}"
    )]
    NotAnObject {
        tool: String,
        reason: String,
        /// Signature of the tool, such as `{path, offset?}`.
        arguments: String,
    },
    #[error("`{tool}` was not run: {}{reason}. Its arguments are {arguments}", place(.field.as_deref()))]
    Argument {
        tool: String,
        /// Path of the field, such as `edits[1].old_string`. `None` if the arguments as a whole are invalid.
        field: Option<String>,
        reason: String,
        arguments: String,
    },
}

fn place(field: Option<&str>) -> String {
    field.map_or_else(String::new, |field| format!("argument `{field}`: "))
}
