//! Changes of files that any program made between two checks of the project.

use std::fmt;

use ipc::id::AgentCall;
use ipc::path::WirePath;
use ipc::tool::Ignored;
use serde::{Deserialize, Serialize};

use super::{ChangeKind, FileDiff};

/// The files that changed between two scans of the project. Changes that diffs of tool calls report are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FilesChanged {
    /// The changed files, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SeenChange>,
    /// Number of further changed files, which are too many to be listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// True if an earlier run was cut off during a turn. Its calls may have made the changes without an author.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Files and directories that git ignores, which are not checked.
    #[serde(default, skip_serializing_if = "Ignored::is_empty")]
    pub ignored: Ignored,
}

/// A change of a file between two checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeenChange {
    /// The file, relative to the project.
    pub path: WirePath,
    /// The way in which the file changed.
    pub change: ChangeKind,
    /// Calls that may have made the change, mostly one; empty if the user or another program made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<AgentCall>,
    /// The kind of the file's content.
    pub content: SeenContent,
    /// The permission bits before and after the change, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<[u32; 2]>,
    /// Number of added lines.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub added: u64,
    /// Number of removed lines.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed: u64,
    /// Texts before and after; absent if the content is no text, unchanged or too long. A link's text is its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<FileDiff>,
}

/// The kind of a changed file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum SeenContent {
    /// UTF-8 text without NUL bytes.
    Text,
    /// Other bytes, whose lines are not compared.
    Binary,
    /// The target of a symbolic link.
    Link,
    /// Content that was not kept, because it is too large or unreadable.
    NotKept,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Displays a changed file, its lines and the author: `forgot.txt +1, new · call 2 of agent 1`.
impl fmt::Display for SeenChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        for (sign, lines) in
            [('+', self.added), ('-', self.removed)].into_iter().filter(|(_, lines)| *lines > 0)
        {
            write!(f, " {sign}{lines}")?;
        }
        match &self.change {
            ChangeKind::Added => f.write_str(", new")?,
            ChangeKind::Deleted => f.write_str(", deleted")?,
            ChangeKind::Modified => {}
            ChangeKind::RenamedFrom(old) => write!(f, ", renamed from {old}")?,
        }
        match self.content {
            SeenContent::Binary => f.write_str(", binary")?,
            SeenContent::Link => f.write_str(", link")?,
            SeenContent::Text | SeenContent::NotKept => {}
        }
        if let Some([old, new]) = self.modes {
            write!(f, ", mode {old:o} → {new:o}")?;
        }
        f.write_str(if self.by.is_empty() { " · you or another program" } else { " · " })?;
        for (n, AgentCall { agent, call }) in self.by.iter().enumerate() {
            write!(f, "{}call {call} of agent {agent}", if n == 0 { "" } else { ", or " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_lines_the_facts_and_the_source() {
        let change = SeenChange {
            path: "a".into(),
            change: ChangeKind::Added,
            by: vec![AgentCall { agent: "1".into(), call: ipc::id::CallId(2) }],
            content: SeenContent::Text,
            modes: None,
            added: 1,
            removed: 0,
            diff: None,
        };
        assert_eq!(change.to_string(), "a +1, new · call 2 of agent 1");
        let moved = ChangeKind::RenamedFrom("b".into());
        let (content, modes) = (SeenContent::Binary, Some([0o644, 0o755]));
        let change = SeenChange { change: moved, by: vec![], added: 0, content, modes, ..change };
        assert_eq!(change.to_string(), "a, renamed from b, binary, mode 644 → 755 · you or another program");
    }
}
