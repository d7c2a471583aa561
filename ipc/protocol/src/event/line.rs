//! Serialisation of an event as JSON: first the envelope, then the `type` and `data` of the event's kind.

use ipc::id::{AgentId, ConversationId, EventId};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{EventKind, ObservedBy, SCHEMA, SessionEvent};

/// Envelope of an event: the first fields of its JSON, before those of the event's kind.
#[derive(Serialize)]
struct EventLine<'a> {
    v: u32,
    id: EventId,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<EventId>,
    time_ms: u64,
    session: &'a ConversationId,
    agent: &'a AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_agent: Option<&'a AgentId>,
    observed_by: ObservedBy,
    r#type: String,
    data: Box<RawValue>,
}

#[derive(Deserialize)]
struct TaggedKind {
    r#type: String,
    data: Box<RawValue>,
}

impl TaggedKind {
    fn of(kind: &EventKind) -> serde_json::Result<Self> {
        serde_json::from_str(&serde_json::to_string(kind)?)
    }
}

impl Serialize for SessionEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let TaggedKind { r#type, data } = TaggedKind::of(&self.kind).map_err(S::Error::custom)?;
        let line = EventLine {
            v: SCHEMA,
            id: self.id,
            parent: self.parent,
            time_ms: self.time_ms,
            session: &self.session,
            agent: &self.agent,
            parent_agent: self.parent_agent.as_ref(),
            observed_by: self.observed_by,
            r#type,
            data,
        };
        line.serialize(serializer)
    }
}
