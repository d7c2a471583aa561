//! The calls in a reply that is kept as it came.

use std::borrow::Cow;

use ipc::id::ToolUseId;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The members of a block that say whether it is a call, and which.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CallMembers<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// The model's ids of the calls of a reply, in their order; a call whose id is no text has an empty one.
pub fn calls_of(blocks: &[Box<RawValue>]) -> Vec<ToolUseId> {
    // A block of another shape is no call.
    let members = blocks.iter().map(|block| serde_json::from_str(block.get()).unwrap_or_default());
    let calls = members.filter(|members: &CallMembers<'_>| members.r#type == "tool_use");
    calls
        .map(|call| ToolUseId(call.id.and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or_default()))
        .collect()
}
