//! One checkpoint: a snapshot of the project's files, stored as the difference from the previous one.

use ipc::id::EventId;
use ipc::message::Stamp;
use ipc::path::WirePath;
use serde::{Deserialize, Serialize};

use crate::journal::changes::ProjectPath;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Before the first write of a turn that began with these messages of the person.
    Messages(Vec<EventId>),
    /// Between two calls of a turn.
    Call,
    End,
    /// Before files are restored, or before the person is shown a preview of that.
    BeforeRewind,
    /// After files were restored.
    AfterRewind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    File {
        mode: u32,
        size: u64,
        /// `None` if the content is too large or could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<KeptContent>,
    },
    Link(WirePath),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptContent {
    /// SHA-256 of the content, in hexadecimal.
    pub(super) digest: String,
    /// Offset of the content in the file `contents`.
    pub(super) at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenFile {
    pub(super) kept: Kept,
    #[serde(with = "stamps")]
    pub(super) stamp: Stamp,
    /// True if any further change of the file must change its stamp. False if the file changed only a moment before the
    /// checkpoint.
    pub(super) settled: bool,
    /// Creation time of the file in nanoseconds; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) born_ns: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub(super) at: At,
    pub(super) asked_ns: i64,
    pub(super) changed: Vec<(ProjectPath, Option<SeenFile>)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CheckpointLine {
    pub(super) at: At,
    pub(super) asked_ns: i64,
    pub(super) changed: Vec<(WirePath, Option<SeenFile>)>,
}

impl Checkpoint {
    pub const fn at(&self) -> &At {
        &self.at
    }

    /// True if this checkpoint has the files as they were at the message, because it was made for that message or a
    /// later one.
    pub(super) fn serves(&self, message: EventId) -> bool {
        matches!(&self.at, At::Messages(ids) if ids.iter().any(|id| *id >= message))
    }

    /// True if the checkpoint was made within a turn.
    pub(super) const fn is_within_turn(&self) -> bool {
        matches!(self.at, At::Messages(_) | At::Call)
    }

    pub(super) fn to_line(&self) -> CheckpointLine {
        let changed = self.changed.iter().map(|(path, seen)| (path.to_wire(), seen.clone()));
        CheckpointLine { at: self.at.clone(), asked_ns: self.asked_ns, changed: changed.collect() }
    }
}

impl CheckpointLine {
    /// Returns the checkpoint; `None` if one of its paths is not allowed in a project.
    pub(super) fn into_checkpoint(self) -> Option<Checkpoint> {
        let Self { at, asked_ns, changed } = self;
        let changed = changed.into_iter().map(|(path, seen)| Some((ProjectPath::try_from(path).ok()?, seen)));
        Some(Checkpoint { at, asked_ns, changed: changed.collect::<Option<_>>()? })
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
