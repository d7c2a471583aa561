//! A tool as the model sees it.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// A tool as the model sees it.
#[derive(Clone, Debug)]
pub struct ToolDefinition {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it is for.
    pub description: Cow<'static, str>,
    /// The JSON schema of its arguments, serialised once.
    pub input_schema: Box<RawValue>,
}
