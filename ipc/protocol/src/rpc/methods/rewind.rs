//! The request for a rewind.

use ipc::id::{ConversationId, EventId};
use ipc::path::WirePath;
use serde::{Deserialize, Serialize};

use crate::event::RewindScope;

/// Parameters of [`REWIND_METHOD`](super::REWIND_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct RewindParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// Id of the user's message: everything becomes as it was before this message. Absent: the last rewind is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<EventId>,
    /// The parts to restore; both if absent.
    #[serde(default)]
    pub scope: RewindScope,
    /// The selected files, relative to the project; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WirePath>,
    /// The digest of the preview to carry out; absent to get a preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}
