//! Restoring files and the conversation as of a message.

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
    /// True if files are taken back.
    pub const fn has_files(self) -> bool {
        matches!(self, Self::Both | Self::Files)
    }

    /// True if the conversation is taken back.
    pub const fn has_conversation(self) -> bool {
        matches!(self, Self::Both | Self::Conversation)
    }
}

/// Message to go back to, and what to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct RewindTarget {
    /// Id of the user's message before which everything becomes as it was. Absent: the last rewind is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<EventId>,
    /// The parts; of an undone rewind, those that it took back.
    #[serde(default)]
    pub scope: RewindScope,
}

/// The consequences of a rewind, before it is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RewindPreview {
    /// The message to return to, or the rewind to undo.
    pub target: RewindTarget,
    /// The selected files, empty for all: the confirmation repeats them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<WirePath>,
    /// The restored files, and the change of each: one that reappears is `added`.
    pub files: Vec<ChangedFile>,
    /// The files that differ, and stay as they are.
    pub left: Vec<LeftFile>,
    /// The number of the user's messages that the conversation loses.
    pub messages: u32,
    /// Parts of the project that no rewind covers, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Hexadecimal SHA-256 of the preview: the confirmation repeats it.
    pub digest: String,
}

/// A file that a rewind leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftFile {
    /// The file, relative to the project.
    pub path: WirePath,
    /// The reason, a phrase.
    pub reason: String,
}

/// A rewind that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rewound {
    /// The message to return to, or the rewind to undo.
    pub target: RewindTarget,
    /// Files that the rewind restored or deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ChangedFile>,
    /// The files that differ, and stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftFile>,
    /// The reason why it was not carried out as a whole, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
