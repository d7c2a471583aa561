//! An event of a type that this version does not know: from a later version of the same schema.

use ipc::id::EventId;
use serde::Deserialize;

use super::{OLDEST_SCHEMA, SCHEMA};
use crate::rpc::is_event_type;

/// Placeholder for an event of a type that this version does not know. Its content is not read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UnknownEvent {
    v: u32,
    /// Position in the log.
    pub id: EventId,
    /// The event that this one follows; absent for the first event.
    #[serde(default)]
    pub parent: Option<EventId>,
    /// Type of the event.
    pub r#type: String,
}

impl UnknownEvent {
    /// Reads a line of a log. `None` if this version knows the event's type, or if it does not know the line's schema.
    pub fn read(line: &[u8]) -> Option<Self> {
        let event: Self = serde_json::from_slice(line).ok()?;
        let is_unknown = (OLDEST_SCHEMA..=SCHEMA).contains(&event.v) && !is_event_type(&event.r#type);
        is_unknown.then_some(event)
    }
}
