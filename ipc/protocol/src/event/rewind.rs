//! Events and messages about a rewind, which restores files and the conversation as of a message.

use ipc::id::EventId;
use ipc::path::WirePath;
use serde::{Deserialize, Serialize};

use super::ChangedFile;

/// The parts of a session that a rewind restores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum RewindScope {
    /// The files of the project and the conversation.
    #[default]
    Both,
    /// The files alone.
    Files,
    /// The conversation alone.
    Conversation,
}

impl RewindScope {
    /// True if the rewind restores files.
    pub const fn has_files(self) -> bool {
        matches!(self, Self::Both | Self::Files)
    }

    /// True if the rewind restores the conversation.
    pub const fn has_conversation(self) -> bool {
        matches!(self, Self::Both | Self::Conversation)
    }
}

/// The message to go back to, and the parts to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct RewindTarget {
    /// Id of the user's message: everything becomes as it was before this message. Absent: the last rewind is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<EventId>,
    /// The parts to restore. To undo a rewind: the parts that it restored.
    #[serde(default)]
    pub scope: RewindScope,
}

/// The consequences of a rewind, before it is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RewindPreview {
    /// The message to return to, or the rewind to undo.
    pub target: RewindTarget,
    /// The selected files, which the confirmation repeats; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<WirePath>,
    /// The files that will be restored, each with its change: a file that reappears is `added`.
    pub files: Vec<ChangedFile>,
    /// The files that differ from the state to restore, but stay as they are.
    pub left: Vec<LeftFile>,
    /// The number of the user's messages that the conversation loses.
    pub messages: u32,
    /// Parts of the project that no rewind covers, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// SHA-256 of the preview, in hexadecimal. The confirmation repeats it.
    pub digest: String,
}

/// A file that a rewind leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftFile {
    /// The file, relative to the project.
    pub path: WirePath,
    /// The reason why the file stays as it is, as a phrase.
    pub reason: String,
}

/// A rewind that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rewound {
    /// The message that was returned to, or the rewind that was undone.
    pub target: RewindTarget,
    /// Files that the rewind restored or deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ChangedFile>,
    /// The files that differ from the restored state, but stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftFile>,
    /// The reason why the rewind was not carried out as a whole; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
