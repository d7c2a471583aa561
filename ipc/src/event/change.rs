//! What became of files.

use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// A place that the host runs or reads later, and that had changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoredPlace {
    /// The place: relative to the project, or absolute where it lies outside.
    pub path: WirePath,
    /// What had happened: `created`, `changed`, `removed`, `moved away`, or the keys of a configuration.
    pub what: String,
    /// Whether it is again what it was.
    pub restored: bool,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedFile {
    /// The file, relative to the project.
    pub path: WirePath,
    /// What became of it.
    pub change: FileChange,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ChangeKind"))]
pub enum FileChange {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content or mode changed.
    Modified,
    /// It has the content of a file that is gone.
    RenamedFrom(WirePath),
}
