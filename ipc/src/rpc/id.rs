//! What ties a response to its request.

use std::fmt;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A number or a string, kept as it was written: it is echoed exactly.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct RequestId(Box<RawValue>);

impl RequestId {
    /// As it stands in the JSON.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// The string that it is, if it is one.
    pub fn text(&self) -> Option<String> {
        serde_json::from_str(self.as_json()).ok()
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl Eq for RequestId {}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl TryFrom<Box<RawValue>> for RequestId {
    type Error = &'static str;

    fn try_from(raw: Box<RawValue>) -> Result<Self, Self::Error> {
        // JSON text begins with what it is.
        match raw.get().as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9') => Ok(Self(raw)),
            _ => Err("an id is a number or a string"),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::try_from(raw).map_err(D::Error::custom)
    }
}
