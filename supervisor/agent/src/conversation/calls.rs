//! Tool calls in a stored reply.

use std::borrow::Cow;

use ipc::id::ToolUseId;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The JSON fields by which a block of a reply is recognised as a tool call and gets its id.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CallMembers<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// Returns the ids of a reply's tool calls, in order. An id that is not a string is returned as an empty one.
pub fn calls_of(blocks: &[Box<RawValue>]) -> Vec<ToolUseId> {
    // A block that does not parse is not a call.
    let members = blocks.iter().map(|block| serde_json::from_str(block.get()).unwrap_or_default());
    let calls = members.filter(|members: &CallMembers<'_>| members.r#type == "tool_use");
    calls
        .map(|call| ToolUseId(call.id.and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or_default()))
        .collect()
}
