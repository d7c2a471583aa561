//! Changes of files, in events.

use std::fmt;

use serde::{Deserialize, Serialize};

use ipc::path::WirePath;

/// A changed path that programs of the host run or read later, and the outcome of its restoration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RestoredPlace {
    /// The changed path: relative to the project, or absolute if it is outside.
    pub path: WirePath,
    /// The kind of change that was found.
    pub what: PlaceChange,
    /// New path of a file that was moved aside. If the user moves it back and names it with `--write`, it is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<WirePath>,
    /// Reason that the file could not be moved aside and was removed, or that it was not restored; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the path could be neither restored nor moved aside, and lost its permissions instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// True if the former state of the path is restored.
    pub restored: bool,
}

impl RestoredPlace {
    /// Returns a phrase about the change, and the new path of a file that was moved aside.
    pub fn phrase(&self) -> String {
        let Self { what, moved_to, error, closed, restored, .. } = self;
        match (moved_to, error) {
            (Some(to), Some(error)) if !restored => format!("{what}; {error}; moved to {to}"),
            (Some(to), _) if what.is_of_git() => {
                format!(
                    "{what}; moved to {to}; to accept the change, move the path back and name it with --write"
                )
            }
            (Some(to), _) => format!("{what}; moved to {to}"),
            (None, Some(error)) if *restored => {
                format!("{what}; cannot be moved aside: {error}, so the path was removed")
            }
            (None, Some(error)) if *closed => format!("{what}; {error}; the file's permissions were removed"),
            (None, Some(error)) => format!("{what} ({error})"),
            (None, None) => what.to_string(),
        }
    }
}

/// A change of a path that programs of the host run or read later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum PlaceChange {
    /// Creation of the path.
    Created,
    /// Change of the content.
    Changed,
    /// Removal of the path.
    Removed,
    /// A parent directory of the path was moved away.
    #[serde(alias = "moved away")]
    MovedAway,
    /// A directory was filled with more files than are checked.
    #[serde(alias = "filled with files")]
    Crowded,
    /// Something appeared in a git directory that is no part of such directories.
    #[serde(alias = "no part of a git directory")]
    NoPartOfGit,
    /// Something that is not a file replaced a file.
    #[serde(alias = "not a file")]
    NotAFile,
    /// The file makes git use another directory, or run a program, when a merge or rebase continues.
    #[serde(alias = "makes git use another directory or run a program when a merge or rebase continues")]
    LeadsElsewhere,
    /// Git does not accept the configuration.
    #[serde(alias = "no configuration that git accepts")]
    BadConfiguration,
    /// Permissions let other users write to the path.
    Permissions,
    /// Names of the changed keys of a git configuration; empty if only the order changed.
    Keys(Vec<String>),
    /// Commands that were added to a paused operation of git, which would run them.
    Commands(Vec<String>),
    /// The phrase with which logs of an older schema describe a change.
    #[serde(untagged)]
    #[schemars(skip)]
    Unstructured(String),
}

impl PlaceChange {
    /// True if a git tool of the user may have made the change.
    const fn is_of_git(&self) -> bool {
        matches!(self, Self::NoPartOfGit | Self::NotAFile | Self::LeadsElsewhere)
    }
}

impl fmt::Display for PlaceChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::MovedAway => "moved away",
            Self::Crowded => "filled with files",
            Self::NoPartOfGit => "not a part of a git directory",
            Self::NotAFile => "not a file",
            Self::LeadsElsewhere => {
                "makes git use another directory or run a program when a merge or rebase continues"
            }
            Self::BadConfiguration => "not a configuration that git accepts",
            Self::Permissions => "writable by others",
            Self::Keys(keys) if keys.is_empty() => "the order of the keys",
            Self::Keys(keys) => return f.write_str(&keys.join(", ")),
            Self::Commands(commands) => return write!(f, "runs a command: {}", commands.join("; ")),
            Self::Unstructured(phrase) => phrase,
        })
    }
}

/// A file whose content, type or permissions differ between two scans of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangedFile {
    /// The file, relative to the project.
    pub path: WirePath,
    /// The way in which the file changed.
    pub change: ChangeKind,
}

/// Kind of a file's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum ChangeKind {
    /// A new file.
    Added,
    /// A removed file.
    Deleted,
    /// Changed content or mode.
    Modified,
    /// The file has the content of a removed one, whose path this is.
    RenamedFrom(WirePath),
}
