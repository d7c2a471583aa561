//! Ids by which responses name their requests.

use std::fmt;

use serde::de::{Deserializer, Error as _};
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use ipc::id::{AgentId, ApprovalId, ConversationId};

/// Id of a request: a number or a string. It is kept exactly as written, since the response has to repeat it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Returns the id of a request for an approval, `CONVERSATION:AGENT:N`: each agent numbers its own approvals.
    pub fn of_approval(conversation: &ConversationId, agent: &AgentId, id: ApprovalId) -> Self {
        Self::from(format!("{conversation}:{agent}:{id}").as_str())
    }

    /// Returns the id as JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Returns the text of the id if it is a JSON string, else `None`.
    pub fn text(&self) -> Option<String> {
        serde_json::from_str(&self.0).ok()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string())
    }
}

impl TryFrom<Box<RawValue>> for RequestId {
    type Error = &'static str;

    fn try_from(raw: Box<RawValue>) -> Result<Self, Self::Error> {
        // The first byte of JSON text shows its type.
        match raw.get().as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9') => Ok(Self(raw.get().to_owned())),
            _ => Err("an id has to be a number or a string"),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::try_from(raw).map_err(D::Error::custom)
    }
}
