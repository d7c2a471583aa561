use std::borrow::Cow;

use protocol::event::RecordedTool;
use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub struct ToolDefinition {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    pub input_schema: Box<RawValue>,
}

impl From<&RecordedTool> for ToolDefinition {
    fn from(tool: &RecordedTool) -> Self {
        let RecordedTool { name, description, input_schema } = tool.clone();
        Self { name: name.into(), description: description.into(), input_schema }
    }
}

impl From<&ToolDefinition> for RecordedTool {
    fn from(tool: &ToolDefinition) -> Self {
        let ToolDefinition { name, description, input_schema } = tool.clone();
        Self { name: name.into_owned(), description: description.into_owned(), input_schema }
    }
}
