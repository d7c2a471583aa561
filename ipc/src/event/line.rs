//! The form of an event in JSON.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{OLDEST_SCHEMA, Observer, SCHEMA, SessionEvent};
use crate::id::{AgentId, ConversationId, EventId};

/// The form of an event in JSON: envelope first, then the kind's own `type` and `data`.
#[derive(Serialize, Deserialize)]
struct Line {
    v: u32,
    id: EventId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<EventId>,
    time_ms: u64,
    session: ConversationId,
    agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_agent: Option<AgentId>,
    observed_by: Observer,
    r#type: String,
    data: Box<RawValue>,
}

impl Serialize for SessionEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        // The kind is adjacently tagged, so its own JSON is {"type":…,"data":…}: taken apart, not made up again.
        #[derive(Deserialize)]
        struct Tagged {
            r#type: String,
            data: Box<RawValue>,
        }
        let kind = serde_json::to_string(&self.kind).map_err(S::Error::custom)?;
        let Tagged { r#type, data } = serde_json::from_str(&kind).map_err(S::Error::custom)?;
        let line = Line {
            v: SCHEMA,
            id: self.id,
            parent: self.parent,
            time_ms: self.time_ms,
            session: self.session.clone(),
            agent: self.agent.clone(),
            parent_agent: self.parent_agent.clone(),
            observed_by: self.observed_by,
            r#type,
            data,
        };
        line.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SessionEvent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let line = Line::deserialize(deserializer)?;
        if !(OLDEST_SCHEMA..=SCHEMA).contains(&line.v) {
            let version = line.v;
            let expected = format!("expected {OLDEST_SCHEMA} to {SCHEMA}");
            return Err(D::Error::custom(format!("event of schema version {version}, {expected}")));
        }
        // The tag has to stand before the content: only then does serde hand the content on without buffering it,
        // and raw JSON inside it stays raw.
        let tag = serde_json::to_string(&line.r#type).map_err(D::Error::custom)?;
        let kind = format!("{{\"type\":{tag},\"data\":{}}}", line.data.get());
        Ok(Self {
            id: line.id,
            parent: line.parent,
            time_ms: line.time_ms,
            session: line.session,
            agent: line.agent,
            parent_agent: line.parent_agent,
            observed_by: line.observed_by,
            kind: serde_json::from_str(&kind).map_err(D::Error::custom)?,
        })
    }
}
