//! The places from which values come: a file, a flag, the environment or the default.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A position in a file. Lines and columns count from 1. Columns are counted in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingPlace {
    /// Path of the file, as it is shown to the person.
    pub file: Arc<Path>,
    pub line: usize,
    pub column: usize,
}

impl SettingPlace {
    /// Returns the position for a byte offset in the text of a file.
    pub fn of(file: &Arc<Path>, text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Self { file: file.clone(), line, column }
    }
}

impl fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", printable(&self.file), self.line)
    }
}

/// Returns a path with terminal controls escaped.
pub(super) fn printable(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOrigin {
    Default,
    Catalogue,
    User(SettingPlace),
    Project(SettingPlace),
    Flag(&'static str),
    Environment(&'static str),
}

impl ConfigOrigin {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Catalogue => "catalogue",
            Self::User(_) => "user",
            Self::Project(_) => "project",
            Self::Flag(_) => "flag",
            Self::Environment(_) => "environment",
        }
    }

    pub const fn place(&self) -> Option<&SettingPlace> {
        match self {
            Self::User(place) | Self::Project(place) => Some(place),
            Self::Default | Self::Catalogue | Self::Flag(_) | Self::Environment(_) => None,
        }
    }
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default | Self::Catalogue => f.write_str(self.as_str()),
            Self::User(place) | Self::Project(place) => place.fmt(f),
            Self::Flag(flag) => f.write_str(flag),
            Self::Environment(name) => write!(f, "${name}"),
        }
    }
}
