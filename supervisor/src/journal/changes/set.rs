//! The change set: the change of each path.

use std::io;

use ipc::message::SnapshotKind;
use ipc::path::WirePath;
use protocol::event::{ChangeKind, ChangedFile};

use super::blob::Blob;
use super::path::ProjectPath;
use super::snapshot::SnapshotFile;

/// Maximum number of notes about single changes. A last note states the number of further changes.
const MAX_NOTES: usize = 20;

#[derive(Clone, Debug, Default)]
pub struct ChangeSet {
    changes: Vec<FileDifference>,
    notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct FileDifference {
    pub path: ProjectPath,
    pub delta: Delta,
}

/// The kind of a change, with the file's old or new state, or both.
#[derive(Clone, Debug)]
pub enum Delta {
    Added(State),
    Deleted(State),
    Modified {
        old: State,
        new: State,
    },
    /// A new path with exactly the content of a deleted path.
    Renamed {
        from: ProjectPath,
        old: State,
        new: State,
    },
}

#[derive(Clone, Debug)]
pub enum State {
    File {
        executable: bool,
        content: Content,
    },
    /// A symbolic link and its target.
    Symlink(WirePath),
}

#[derive(Clone, Debug)]
pub enum Content {
    Blob(Blob),
    /// A content that was not recorded, because it is larger than the limit.
    Omitted {
        size: u64,
    },
}

impl ChangeSet {
    pub(super) fn new(changes: Vec<FileDifference>, left_out: Vec<String>) -> Self {
        let unsayable = changes.iter().filter_map(FileDifference::obstacle);
        let mut notes: Vec<_> = left_out.into_iter().chain(unsayable).collect();
        if let Some(more) = notes.len().checked_sub(MAX_NOTES).filter(|more| *more > 0) {
            notes.truncate(MAX_NOTES);
            notes.push(format!("{more} more files are not in the patch"));
        }
        Self { changes, notes }
    }

    pub fn changes(&self) -> &[FileDifference] {
        &self.changes
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns a note for each change that is not in the patch, with the reason.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn files(&self) -> Vec<ChangedFile> {
        self.changes.iter().map(FileDifference::to_file).collect()
    }
}

impl FileDifference {
    /// Returns the reason why a patch cannot contain this change; `None` if it can.
    pub fn obstacle(&self) -> Option<String> {
        let states = self.delta.states();
        if states.iter().any(|state| self.path.is_refused_by_git(matches!(state, State::Symlink(_)))) {
            return Some(format!("{} changed, but is not in the patch: git refuses such a path", self.path));
        }
        let omitted = states.iter().any(|state| state.blob_is_omitted());
        omitted.then(|| {
            format!(
                "{} changed, but is not in the patch: the file is too large or could not be read",
                self.path
            )
        })
    }

    fn to_file(&self) -> ChangedFile {
        let change = match &self.delta {
            Delta::Added(_) => ChangeKind::Added,
            Delta::Deleted(_) => ChangeKind::Deleted,
            Delta::Modified { .. } => ChangeKind::Modified,
            Delta::Renamed { from, .. } => ChangeKind::RenamedFrom(from.to_wire()),
        };
        ChangedFile { path: self.path.to_wire(), change }
    }
}

impl Delta {
    /// Returns the change between two states; `None` if they are equal.
    pub(super) fn between(old: Option<State>, new: Option<State>) -> io::Result<Option<Self>> {
        Ok(match (old, new) {
            (None, None) => None,
            (None, Some(new)) => Some(Self::Added(new)),
            (Some(old), None) => Some(Self::Deleted(old)),
            (Some(old), Some(new)) => (!old.is_same(&new)?).then_some(Self::Modified { old, new }),
        })
    }

    fn states(&self) -> Vec<&State> {
        match self {
            Self::Added(state) | Self::Deleted(state) => vec![state],
            Self::Modified { old, new } | Self::Renamed { old, new, .. } => vec![old, new],
        }
    }
}

impl State {
    /// Returns the mode as git writes it.
    pub const fn git_mode(&self) -> &'static str {
        match self {
            Self::File { executable: false, .. } => "100644",
            Self::File { executable: true, .. } => "100755",
            Self::Symlink(_) => "120000",
        }
    }

    const fn blob_is_omitted(&self) -> bool {
        matches!(self, Self::File { content: Content::Omitted { .. }, .. })
    }

    /// True if both states have the same kind, mode and bytes.
    fn is_same(&self, other: &Self) -> io::Result<bool> {
        Ok(self.git_mode() == other.git_mode() && self.same_content(other)?)
    }

    /// True if both states have the same kind and bytes. Contents that were not recorded are never equal.
    pub(super) fn same_content(&self, other: &Self) -> io::Result<bool> {
        match (self, other) {
            // Bytes are compared, because as paths `a/./b` and `a/b` are equal, but link targets are text.
            (Self::Symlink(old), Self::Symlink(new)) => Ok(old.as_bytes() == new.as_bytes()),
            (
                Self::File { content: Content::Blob(old), .. },
                Self::File { content: Content::Blob(new), .. },
            ) => old.same_bytes(new),
            _ => Ok(false),
        }
    }
}

impl From<&SnapshotFile> for State {
    fn from(entry: &SnapshotFile) -> Self {
        match &entry.kind {
            SnapshotKind::Symlink(target) => Self::Symlink(target.clone()),
            SnapshotKind::File { mode, size, .. } => Self::File {
                executable: mode & 0o100 != 0,
                content: entry.blob.clone().map_or(Content::Omitted { size: *size }, Content::Blob),
            },
        }
    }
}
