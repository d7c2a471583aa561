//! Data about a tool call for an editor: its kind, its paths, its changes of files.

use serde::{Deserialize, Serialize};

use ipc::path::WirePath;

/// The kind of a tool, in the words of the Agent Client Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum ToolKind {
    /// The call reads files or directories.
    Read,
    /// The call changes files.
    Edit,
    /// The call removes files.
    Delete,
    /// The call moves files.
    Move,
    /// The call searches.
    Search,
    /// The call executes a command.
    Execute,
    /// The call plans, or starts another agent.
    Think,
    /// The call fetches external data.
    Fetch,
    /// The call does anything else.
    #[default]
    Other,
}

/// A file or directory that a call is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Location {
    /// The file or directory, absolute.
    pub path: WirePath,
    /// Number of the line, from 1, if the call is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// A change of a file by a call: the texts of the whole file or, if it is long, of the lines that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileDiff {
    /// The file, absolute.
    pub path: WirePath,
    /// Number of the first line of both texts, from 1; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// The text before the change; absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// The text after the change.
    pub new_text: String,
}
