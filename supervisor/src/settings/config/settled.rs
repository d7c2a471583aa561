//! The value in force of one key, and values of a project's file that are ignored.

use super::keys::Key;
use super::origin::ConfigOrigin;
use super::value::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    pub key: &'static Key,
    /// The value; `None` if nothing sets the key and it has no default.
    pub value: Option<Value>,
    /// Origin of the value. If the value is a list, its elements have their own origins.
    pub origin: ConfigOrigin,
}

/// A setting of an untrusted project's file that is ignored, because it would add access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub key: &'static Key,
    /// The value that the project's file would set, or add to a list.
    pub value: Value,
    pub origin: ConfigOrigin,
}

/// Writes the setting in short form: `write "/data"`, `net "on"`.
impl std::fmt::Display for Ignored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.key.name, self.value)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Key {}
