//! Looks at the project, and the states of its files.

use ipc::id::EventId;
use ipc::message::Stamp;
use ipc::path::WirePath;
use serde::{Deserialize, Serialize};

use crate::journal::changes::ProjectPath;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// No file was written since these messages of the user's.
    Messages(Vec<EventId>),
    /// A call of a turn is over, and the turn continues.
    Call,
    End,
    /// Files are about to be taken back, or the user is shown which ones.
    BeforeRewind,
    /// Files were taken back.
    AfterRewind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    File {
        /// Its permission bits.
        mode: u32,
        size: u64,
        /// Its content; absent if it is too large, or could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<KeptContent>,
    },
    /// A symbolic link and its target.
    Link(WirePath),
}

/// A content, in the file of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptContent {
    /// SHA-256 of the content, in hexadecimal.
    pub(super) digest: String,
    /// The place of its first byte.
    pub(super) at: u64,
}

/// The state of a file, with the file system's evidence of later equality.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenFile {
    pub(super) kept: Kept,
    #[serde(with = "stamps")]
    pub(super) stamp: Stamp,
    /// False if a later change may have left the same stamp.
    pub(super) settled: bool,
    /// When it came to be, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) born_ns: Option<i64>,
}

/// A look, as the difference from the one before.
#[derive(Clone, Debug)]
pub struct Look {
    pub(super) at: At,
    /// When it was asked for, by the clock that stamps files.
    pub(super) asked_ns: i64,
    pub(super) changed: Vec<(ProjectPath, Option<SeenFile>)>,
}

/// A look as a line of its file.
#[derive(Serialize, Deserialize)]
pub(super) struct CheckpointLine {
    pub(super) at: At,
    pub(super) asked_ns: i64,
    pub(super) changed: Vec<(WirePath, Option<SeenFile>)>,
}

impl Look {
    pub const fn at(&self) -> &At {
        &self.at
    }

    /// True if the message was said at this look, or after everything that was written before it.
    pub(super) fn serves(&self, message: EventId) -> bool {
        matches!(&self.at, At::Messages(ids) if ids.iter().any(|id| *id >= message))
    }

    /// True of a look within a turn.
    pub(super) const fn is_within_turn(&self) -> bool {
        matches!(self.at, At::Messages(_) | At::Call)
    }

    pub(super) fn to_line(&self) -> CheckpointLine {
        let changed = self.changed.iter().map(|(path, seen)| (path.to_wire(), seen.clone()));
        CheckpointLine { at: self.at.clone(), asked_ns: self.asked_ns, changed: changed.collect() }
    }
}

impl CheckpointLine {
    /// Returns the look; `None` if a path cannot belong to a project.
    pub(super) fn into_look(self) -> Option<Look> {
        let Self { at, asked_ns, changed } = self;
        let changed = changed.into_iter().map(|(path, seen)| Some((ProjectPath::try_from(path).ok()?, seen)));
        Some(Look { at, asked_ns, changed: changed.collect::<Option<_>>()? })
    }
}

mod stamps {
    use ipc::message::Stamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(stamp: &Stamp, serializer: S) -> Result<S::Ok, S::Error> {
        (stamp.inode, stamp.modified_ns, stamp.changed_ns).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Stamp, D::Error> {
        let (inode, modified_ns, changed_ns) = Deserialize::deserialize(deserializer)?;
        Ok(Stamp { inode, modified_ns, changed_ns })
    }
}
