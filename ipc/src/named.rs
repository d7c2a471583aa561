//! Paths in a command's output, as they were when the command had ended.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// A path that error messages in a command's output name, in its state after the end of the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPlace {
    /// The path as it is in the output.
    pub named: String,
    /// The absolute path, with links resolved as far as the path exists.
    pub path: WirePath,
    /// Nearest existing parent, if the path does not exist. A right can only be granted for an existing path.
    pub nearest: Option<WirePath>,
    /// The operations that file permissions allow.
    pub permits: Permits,
    /// Device number, as stat(2) gives it, of the file system that contains the path or would contain a missing one.
    pub device: u64,
    /// Results of the operations when the worker repeated them.
    pub asked: Asked,
}

impl NamedPlace {
    /// Returns the id of the process in whose `/proc` directory the path is. `None` for any other path.
    pub fn process(&self) -> Option<u32> {
        process_of(self.path.as_path())
    }
}

/// Returns the id of the process in whose `/proc` directory a path is. `None` for any other path.
pub fn process_of(path: &Path) -> Option<u32> {
    let number = path.strip_prefix("/proc").ok()?.iter().next()?;
    number.to_str()?.parse().ok()
}

/// The operations on a path that file permissions allow, without regard to the sandbox.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permits {
    /// True if the file can be read, or the directory listed.
    pub read: bool,
    /// True if the file can be changed, or created if it is missing.
    pub write: bool,
    /// True if the file can be executed, or the directory entered.
    pub execute: bool,
    /// True if the path can be removed or renamed.
    pub remove: bool,
    /// True if mode and times of the path can be changed, as only the owner may.
    pub own: bool,
}

impl Permits {
    /// All operations, as file permissions allow them to root.
    pub const ALL: Self = Self { read: true, write: true, execute: true, remove: true, own: true };
}

/// Results of operations that the worker repeated: an error number, 0 on success, `None` if it was not tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Result of opening the path for reading.
    pub read: Option<i32>,
    /// Result of opening the path for writing or, if it is missing, of creating a file in its nearest directory.
    pub write: Option<i32>,
    /// Result of changing the directory that contains the path.
    pub remove: Option<i32>,
}
