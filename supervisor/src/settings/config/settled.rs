//! What holds of one key, and what a project's file would have.

use super::keys::Key;
use super::origin::ConfigOrigin;
use super::value::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    pub key: &'static Key,
    /// The value; absent if the default is no value.
    pub value: Option<Value>,
    /// Origin of the value; elements of a list have their own.
    pub origin: ConfigOrigin,
}

/// Something that a project's file would widen, and does not as long as it is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub key: &'static Key,
    /// The value that it would add or set.
    pub value: Value,
    pub origin: ConfigOrigin,
}

/// `write "/data"`, `net "on"`: in a few words.
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
