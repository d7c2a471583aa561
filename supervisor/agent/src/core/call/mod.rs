mod result;
mod tool_use;

pub(in crate::core) use result::{CallResult, Denials};
pub(in crate::core) use tool_use::ToolUse;
