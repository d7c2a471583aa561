//! The session's events: what the log holds and what `stream-json` prints.
//!
//! One JSON object a line. The fields of [`SessionEvent`] come first, then `type` and `data` of its [`EventKind`].

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::approval::{ApprovalMode, ReviewDecision, ServerRequest, SessionGrant};
use crate::denial::Denial;
use crate::id::{AgentId, ApprovalId, CallId, ConversationId, EventId, Generation, GrantId, ToolUseId};
use crate::path::WirePath;

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

/// What happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventKind {
    /// The session began.
    SessionStarted(SessionStarted),
    /// The user said something.
    UserMessage {
        /// What.
        text: String,
    },
    /// Something that the model is told besides the user's words.
    ContextAdded {
        /// Where it comes from: `environment`, `AGENTS.md` …
        source: String,
        /// The text.
        text: String,
    },
    /// A request was sent to the model.
    ModelRequested {
        /// The step of this run, from 1.
        step: u32,
        /// The attempt at this step, from 1.
        attempt: u32,
    },
    /// A reply of the model was complete.
    AssistantMessage(AssistantMessage),
    /// A reply of the model did not come to its end.
    ModelFailed {
        /// The kind of the error, as in WIRE: `overloaded_error`, `connection`, `truncated_stream` …
        kind: String,
        /// What went wrong, for people.
        message: String,
        /// When it is tried again, in milliseconds; absent if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
    },
    /// A tool call is about to be carried out.
    ToolCallStarted {
        /// The call.
        call: CallId,
        /// The model's id of it.
        tool_use: ToolUseId,
        /// The tool's name.
        name: String,
        /// The arguments, exactly as the model wrote them.
        #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
        input: Box<RawValue>,
    },
    /// A tool call ended, one way or another.
    ToolCallFinished {
        /// The call.
        call: CallId,
        /// The model's id of it.
        tool_use: ToolUseId,
        /// How it ended.
        status: ToolCallStatus,
        /// What the model is told.
        content: String,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// Something was beyond the rights.
    Denied {
        /// The call that tried it.
        call: CallId,
        /// What, why, and how to allow it.
        #[serde(flatten)]
        denial: Denial,
        /// The agent's rights, in one line.
        rights: String,
    },
    /// Somebody is asked whether a call may go beyond the standing rights.
    ApprovalRequested {
        /// The request.
        id: ApprovalId,
        /// What was asked, as it was shown.
        request: Box<ServerRequest>,
    },
    /// A request for an approval is decided: the one line that says how, and why.
    ApprovalAnswered(ApprovalAnswered),
    /// An approval reaches further than its call, until the session ends or it is revoked.
    GrantAdded(SessionGrant),
    /// What was approved for the session counts no more.
    GrantRevoked {
        /// Which.
        id: GrantId,
    },
    /// What becomes of calls beyond the standing rights is decided otherwise from now on.
    ModeChanged {
        /// The new mode.
        mode: ApprovalMode,
    },
    /// A worker is ready, and verified from outside.
    WorkerStarted(WorkerStarted),
    /// The rights changed: the worker before is gone to its last descendant, and this one serves.
    RightsChanged(RightsChanged),
    /// A worker is gone.
    WorkerEnded {
        /// Which incarnation.
        generation: Generation,
        /// Why, in a sentence.
        reason: String,
    },
    /// A worker broke the protocol and was killed for it.
    ProtocolViolation {
        /// Which incarnation.
        generation: Generation,
        /// What it did.
        violation: String,
    },
    /// Something that a person should know.
    Notice {
        /// A stable code.
        code: String,
        /// The sentence.
        message: String,
    },
    /// What the host runs later had changed, and was put back.
    Restored {
        /// The call after which it was found; absent at the end of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The places.
        places: Vec<RestoredPlace>,
    },
    /// The change of the project's files since the session began.
    ChangeSet {
        /// The files, in order.
        files: Vec<ChangedFile>,
        /// Where the patch was written, where it was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<WirePath>,
    },
    /// The agent rests; another message of the user may follow. Headless runs have their [`Result`](Self::Result) instead.
    TurnFinished(TurnFinished),
    /// The end: always the last event.
    Result(RunResult),
}

/// How a request for an approval was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalAnswered {
    /// The request; absent where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ApprovalId>,
    /// The call that it is for.
    pub call: CallId,
    /// The decision.
    pub decision: ReviewDecision,
    /// Who decided.
    pub by: DecidedBy,
    /// What was wrong with the answer, or why there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Who decided on an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DecidedBy {
    /// The user, by an answer that fits the request.
    User,
    /// What the user approved for the session.
    SessionGrant(GrantId),
    /// The user's configuration.
    Configuration,
    /// Nobody in time.
    Deadline,
    /// Nobody: there is no front end that could ask, or it is gone.
    NoFrontEnd,
    /// Nobody: the answer was none that counts.
    BadAnswer,
    /// Nobody: the turn ended, or the rights changed.
    Interrupted,
}

/// How a session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionStarted {
    /// The version of Bailiwick.
    pub version: String,
    /// The project.
    pub project: WirePath,
    /// `plan` or `execute`.
    pub activity: String,
    /// `ask`, `auto` or `deny`.
    pub mode: String,
    /// The model's name.
    pub model: String,
    /// The provider's name.
    pub provider: String,
    /// The standing rights, in one line.
    pub rights: String,
}

/// A complete reply of the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssistantMessage {
    /// The model's id of the message.
    pub message_id: String,
    /// The model that answered.
    pub model: String,
    /// The content blocks, byte for byte as they go back to the model.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Value>"))]
    pub content: Vec<Box<RawValue>>,
    /// Why the model stopped.
    pub stop_reason: String,
    /// What it cost in tokens.
    pub usage: TokenUsage,
}

/// Tokens of one reply, or of many. Sums saturate: the numbers are a provider's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUsage {
    /// Prompt tokens that came from no cache.
    pub input: u64,
    /// Prompt tokens that were written to the cache.
    pub cache_creation: u64,
    /// Prompt tokens that were read from the cache.
    pub cache_read: u64,
    /// Tokens of the reply.
    pub output: u64,
}

/// Events are equal when their JSON is, byte for byte: what the model wrote is kept as raw text, and has no other equality.
impl PartialEq for EventKind {
    fn eq(&self, other: &Self) -> bool {
        match (serde_json::to_string(self), serde_json::to_string(other)) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

impl TokenUsage {
    /// All tokens of the prompt.
    pub const fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_creation).saturating_add(self.cache_read)
    }

    /// All tokens.
    pub const fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_creation = self.cache_creation.saturating_add(other.cache_creation);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.output = self.output.saturating_add(other.output);
    }
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ToolCallStatus {
    /// It did what it was to do.
    Completed,
    /// It failed.
    Failed,
    /// It was beyond the rights.
    Denied,
    /// It was interrupted: by the user, a time-out, or the end of its worker.
    Interrupted,
}

impl fmt::Display for ToolCallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
        })
    }
}

/// A worker that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerStarted {
    /// Which incarnation.
    pub generation: Generation,
    /// Its process id.
    pub pid: u32,
    /// What this machine can enforce.
    pub tier: String,
    /// The Landlock ABI in force.
    pub landlock_abi: u32,
    /// How many Landlock rules there are.
    pub rules: u32,
    /// The rights, in one line.
    pub rights: String,
    /// SHA-256 of the rights, in hexadecimal.
    pub rights_digest: String,
    /// SHA-256 of the rights and of what the kernel holds the worker to them by, in hexadecimal.
    pub ruleset_digest: String,
    /// What it is there for, of a worker that carries out one effect and ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_shot: Option<OneShot>,
    /// What is promised and not enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// From spawning to `Ready`, in microseconds.
    pub startup_us: u64,
}

/// The one effect of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneShot {
    /// The call that it belongs to.
    pub call: CallId,
    /// What its rights are beyond the standing ones, in one line.
    pub grant: String,
    /// SHA-256 of the effect, in hexadecimal.
    pub effect_digest: String,
}

/// Rights that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RightsChanged {
    /// The first incarnation under the new rights.
    pub generation: Generation,
    /// Its process id.
    pub pid: u32,
    /// The new rights, in one line.
    pub rights: String,
    /// SHA-256 of the rights, in hexadecimal.
    pub rights_digest: String,
    /// SHA-256 of the rights and of what the kernel holds the worker to them by, in hexadecimal.
    pub ruleset_digest: String,
}

/// A place that the host runs or reads later, and that had changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoredPlace {
    /// The place: relative to the project, or absolute where it lies outside.
    pub path: WirePath,
    /// What had happened: `created`, `changed`, `removed`, `moved away`, or the keys of a configuration.
    pub what: String,
    /// Whether it is again what it was.
    pub restored: bool,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedFile {
    /// The file, relative to the project.
    pub path: WirePath,
    /// What became of it.
    pub change: FileChange,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ChangeKind"))]
pub enum FileChange {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content or mode changed.
    Modified,
    /// It has the content of a file that is gone.
    RenamedFrom(WirePath),
}

/// The end of one turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnFinished {
    /// A stable word for why: `done`, `interrupted`, `denied`, `provider_error` …
    pub reason: String,
    /// A sentence for people, where the reason needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many requests were answered.
    pub steps: u32,
    /// The turn's tokens.
    pub usage: TokenUsage,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// The exit code.
    pub exit_code: u8,
    /// A stable word for it: `done`, `gave_up`, `denied`, `provider_error` …
    pub reason: String,
    /// A sentence for people, where the reason needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the sandbox promises and this kernel does not enforce.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The model's last words.
    pub text: String,
    /// How many requests were answered.
    pub steps: u32,
    /// Tokens in all.
    pub usage: TokenUsage,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

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
        if line.v != SCHEMA {
            let version = line.v;
            return Err(D::Error::custom(format!("event of schema version {version}, expected {SCHEMA}")));
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

#[cfg(test)]
mod tests {
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
