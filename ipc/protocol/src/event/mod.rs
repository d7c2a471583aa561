//! Events of the session, in the log and in `stream-json`.
//!
//! One JSON object per line: the fields of [`SessionEvent`], then `type` and `data` of its [`EventKind`].

mod account;
mod activity;
mod agent;
mod approval;
mod call;
mod change;
mod context;
mod conversation;
mod end;
mod failure;
mod guest;
mod kind;
mod line;
mod notice;
mod plan;
mod prompt;
mod read;
mod rewind;
mod seen;
mod tasks;
mod unknown;
mod word;
mod worker;

use serde::{Deserialize, Serialize};

use ipc::id::{AgentId, ConversationId, EventId};

pub use account::{Account, counted};
pub use activity::Activity;
pub use agent::{SubAgentResult, SubAgentSpawned, SubAgentStatus, WriteTurnAwaited, WriteTurnTaken};
pub use approval::{AppliedPart, ApprovalAnswered, DecidedBy, LeftOutHunks, TurnAllowanceEnd, TurnAllowed};
pub use call::{FileDiff, Location, ToolKind};
pub use change::{ChangeKind, ChangedFile, PlaceChange, RestoredPlace};
pub use context::{CompactionCause, CompactionStarted, ContextCompacted, SummaryFrom};
pub use conversation::{AssistantMessage, ModelChanged, RunResult, SessionStarted, TokenUsage, TurnFinished};
pub use end::{EndReason, WorkerEnd};
pub use failure::{FailureKind, LeftOut};
pub use guest::{GuestEnd, GuestEnded, GuestRole, GuestStarted, GuestTotals, PinChange, ToolPinned};
pub use kind::{EventKind, ToolCallStatus};
pub use notice::NoticeCode;
pub use plan::{AcceptanceOutcome, PlanApproved, PlanAuthor, PlanCreated, PlanStepStatus, StepAccount};
pub use prompt::{NewContext, PromptFixed, RecordedTool};
pub use rewind::{LeftFile, RewindPreview, RewindScope, RewindTarget, Rewound};
pub use seen::{FilesChanged, SeenChange, SeenContent};
pub use tasks::{ListedTask, TaskState, TasksUpdated, UPDATE_TASKS};
pub use unknown::UnknownEvent;
pub use worker::{HostUse, OneShot, RightsChanged, WorkerStarted};

pub use ipc::recorded::Recorded;
pub use ipc::tool::Ignored;

/// The version of the event schema; it changes whenever a field does.
pub const SCHEMA: u32 = 7;

/// The oldest version that can still be read. Fields that events of this version do not have get a default value.
pub const OLDEST_SCHEMA: u32 = 3;

/// A line of the session log: an event, its position in the log, and its agent.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEvent {
    /// Position in the log.
    pub id: EventId,
    /// The event that this one follows; absent for the first event.
    pub parent: Option<EventId>,
    /// Time of the recording in milliseconds since the epoch.
    pub time_ms: u64,
    /// The session to which the event belongs.
    pub session: ConversationId,
    /// The agent that the event is about.
    pub agent: AgentId,
    /// The agent that started `agent`; absent if no agent did.
    pub parent_agent: Option<AgentId>,
    /// The process that reported the event. Only the supervisor's own reports are trusted.
    pub observed_by: ObservedBy,
    /// Kind and data of the event.
    pub kind: EventKind,
}

/// The process that reported an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum ObservedBy {
    /// The supervisor itself.
    Supervisor,
    /// A broker, by its report.
    Broker,
    /// A worker, by its message.
    Worker,
    /// The server of an external tool, by its message.
    Server,
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
            observed_by: ObservedBy::Supervisor,
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
            estimated: false,
            cost_usd: None,
        };
        let line = serde_json::to_string(&event(EventKind::AssistantMessage(message))).unwrap();
        assert!(
            line.starts_with(
                r#"{"v":7,"id":2,"parent":1,"time_ms":1700000000000,"session":"s","agent":"1","#
            )
        );
        let back: SessionEvent = serde_json::from_str(&line).unwrap();
        let EventKind::AssistantMessage(message) = back.kind else { unreachable!("{line}") };
        assert_eq!(message.content[0].get(), raw);
    }

    #[test]
    fn another_schema_version_is_refused_by_name() {
        let message = EventKind::UserMessage { text: "hi".to_owned(), images: vec![] };
        let line = serde_json::to_string(&event(message)).unwrap();
        for version in [SCHEMA + 1, OLDEST_SCHEMA - 1] {
            let other = line.replace("\"v\":7", &format!("\"v\":{version}"));
            let error = serde_json::from_str::<SessionEvent>(&other).unwrap_err().to_string();
            assert!(
                error.contains(&format!("event of schema version {version}, expected 3 to 7")),
                "{error}"
            );
        }
    }

    #[test]
    fn what_an_older_version_wrote_is_read() {
        let old = r#"{"v":3,"id":2,"time_ms":1,"session":"s","agent":"1","observed_by":"supervisor","#;
        let message = format!(r#"{old}"type":"user_message","data":{{"text":"hi"}}}}"#);
        let back: SessionEvent = serde_json::from_str(&message).unwrap();
        assert_eq!(back.kind, EventKind::UserMessage { text: "hi".to_owned(), images: vec![] });
        let call = r#"{"call":1,"tool_use":"t","status":"completed","content":"ok","duration_ms":1}"#;
        let finished = format!(r#"{old}"type":"tool_call_finished","data":{call}}}"#);
        let back: SessionEvent = serde_json::from_str(&finished).unwrap();
        let EventKind::ToolCallFinished { images, .. } = back.kind else { unreachable!("{finished}") };
        assert!(images.is_empty());
        let denial = r#""layer":"mounts","operation":"write","object":{"path":"/x"},"missing_right":"m","grade":"proved""#;
        let denied = format!(r#"{old}"type":"denied","data":{{"call":7,{denial},"rights":"rw ."}}}}"#);
        let back: SessionEvent = serde_json::from_str(&denied).unwrap();
        let EventKind::Denied { call, denial, .. } = back.kind else { unreachable!("{denied}") };
        assert_eq!(denial.missing_right, Recorded::Unstructured("m".to_owned()));
        assert_eq!(call, Some(ipc::id::CallId(7)));
        let result = r#""type":"result","data":{"exit_code":0,"reason":"done","missing":["a layer"],"text":"","steps":1,"usage":{"input":0,"cache_creation":0,"cache_read":0,"output":0},"duration_ms":1}}"#;
        let event: SessionEvent = serde_json::from_str(&format!("{old}{result}")).unwrap();
        let EventKind::Result(result) = event.kind else { unreachable!("{old}") };
        assert_eq!(result.not_enforced, ["a layer"]);
    }
}
