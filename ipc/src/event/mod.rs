//! The session's events: what the log holds and what `stream-json` prints.
//!
//! One JSON object a line. The fields of [`SessionEvent`] come first, then `type` and `data` of its [`EventKind`].

mod approval;
mod change;
mod conversation;
mod kind;
mod line;
mod worker;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, ConversationId, EventId};

pub use approval::{ApprovalAnswered, DecidedBy};
pub use change::{ChangedFile, FileChange, RestoredPlace};
pub use conversation::{AssistantMessage, RunResult, SessionStarted, TokenUsage, TurnFinished};
pub use kind::{EventKind, ToolCallStatus};
pub use worker::{OneShot, RightsChanged, WorkerStarted};

/// The version of the event schema; it changes whenever a field does.
pub const SCHEMA: u32 = 3;

/// One event of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEvent {
    /// Its place in the log.
    pub id: EventId,
    /// The event that it follows from; absent for the first one.
    pub parent: Option<EventId>,
    /// When it was recorded, milliseconds since the epoch.
    pub time_ms: u64,
    /// The session.
    pub session: ConversationId,
    /// The agent that it concerns.
    pub agent: AgentId,
    /// That agent's parent.
    pub parent_agent: Option<AgentId>,
    /// Who saw it happen.
    pub observed_by: Observer,
    /// What happened.
    pub kind: EventKind,
}

/// Who saw an event happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Observer {
    /// The supervisor itself.
    Supervisor,
    /// A remote broker said so.
    Broker,
    /// A worker said so.
    Worker,
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn event(kind: EventKind) -> SessionEvent {
        SessionEvent {
            id: EventId(2),
            parent: Some(EventId(1)),
            time_ms: 1_700_000_000_000,
            session: "s".into(),
            agent: AgentId::root(),
            parent_agent: None,
            observed_by: Observer::Supervisor,
            kind,
        }
    }

    #[test]
    fn raw_json_of_the_model_survives_byte_for_byte() {
        let raw = r#"{"type":"tool_use", "input":{"b":1.0,"a":"\u00e9"}}"#;
        let message = AssistantMessage {
            message_id: "m".to_owned(),
            model: "x".to_owned(),
            content: vec![RawValue::from_string(raw.to_owned()).unwrap()],
            stop_reason: "tool_use".to_owned(),
            usage: TokenUsage::default(),
        };
        let line = serde_json::to_string(&event(EventKind::AssistantMessage(message))).unwrap();
        assert!(
            line.starts_with(
                r#"{"v":3,"id":2,"parent":1,"time_ms":1700000000000,"session":"s","agent":"1","#
            )
        );
        let back: SessionEvent = serde_json::from_str(&line).unwrap();
        let EventKind::AssistantMessage(message) = back.kind else { unreachable!("{line}") };
        assert_eq!(message.content[0].get(), raw);
    }

    #[test]
    fn another_schema_version_is_refused_by_name() {
        let line = serde_json::to_string(&event(EventKind::UserMessage { text: "hi".to_owned() })).unwrap();
        let error = serde_json::from_str::<SessionEvent>(&line.replace("\"v\":3", "\"v\":9")).unwrap_err();
        assert!(error.to_string().contains("event of schema version 9, expected 3"), "{error}");
    }
}
