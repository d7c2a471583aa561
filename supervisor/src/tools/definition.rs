//! A tool as it is offered to the model.

use serde_json::value::RawValue;

/// A tool as the model sees it.
#[derive(Clone, Debug)]
pub struct ToolDefinition {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// The JSON schema of its arguments, serialised once.
    pub input_schema: Box<RawValue>,
}
