//! Places that a command's output names, as a look at them found them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// A place that a command's output complains of, as it was found when the command had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPlace {
    /// Name as the output has it.
    pub named: String,
    /// The place that it leads to: absolute, and without links as far as it exists.
    pub path: WirePath,
    /// Nearest existing ancestor, if the place does not exist. A right can only be granted for an existing path.
    pub nearest: Option<WirePath>,
    /// The acts that plain permissions would have allowed.
    pub permits: Permits,
    /// The file system that it lies on, or would.
    pub device: u64,
    /// The kernel's answer to the one that looked.
    pub asked: Asked,
}

impl NamedPlace {
    /// The process whose directory in `/proc` it lies in.
    pub fn process(&self) -> Option<u32> {
        process_of(self.path.as_path())
    }
}

/// The process whose directory in `/proc` a path lies in.
pub fn process_of(path: &Path) -> Option<u32> {
    let number = path.strip_prefix("/proc").ok()?.iter().next()?;
    number.to_str()?.parse().ok()
}

/// The acts that plain file permissions allow of a place, whatever confines the program besides.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permits {
    /// Reading or listing it.
    pub read: bool,
    /// Changing it, or making it where it does not exist.
    pub write: bool,
    /// Executing or entering it.
    pub execute: bool,
    /// Taking its name away.
    pub remove: bool,
    /// Changing its mode and its times, which only its owner may.
    pub own: bool,
}

impl Permits {
    /// Every act, as root has it.
    pub const ALL: Self = Self { read: true, write: true, execute: true, remove: true, own: true };
}

/// Error number of the same act, tried in the command's confinement; 0 on success, `None` if not tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Opening it to read.
    pub read: Option<i32>,
    /// Opening it to write; making something in its nearest directory, where it does not exist.
    pub write: Option<i32>,
    /// Changing the directory that its name is in.
    pub remove: Option<i32>,
}
