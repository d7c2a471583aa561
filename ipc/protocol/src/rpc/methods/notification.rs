//! Notifications to a front end, which can choose between two forms.
//!
//! The typed form has a method for each kind of event. The generic form has one method, and the kind as `type`. In both
//! forms the parameters have the same content: `{"v", "conversation_id", "logged"?, "data"}`.

use ipc::id::{AgentId, ApprovalId, CallId, ConversationId, EventId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::event::{EventKind, ObservedBy, RewindPreview, SCHEMA, SessionEvent};
use crate::frontend::{UiEvent, UiEventKind};
use crate::rpc::transport::RequestId;
use crate::server_prompt::ExpandedPrompt;

/// The method of every notification in the generic form.
pub const SESSION_EVENT_METHOD: &str = "sessionEvent";

const TYPED: &str = "event/";

/// Defines the table of typed notifications: each row has the kind of event and its method.
macro_rules! notifications {
    ($($kind:pat => $constant:ident = $method:literal;)*) => {
        $(
            #[doc = concat!("The method of a notification in the typed form: `", $method, "`.")]
            pub const $constant: &str = $method;
        )*

        /// The methods of all notifications in the typed form.
        pub const NOTIFICATION_METHODS: &[&str] = &[$($constant),*];

        impl Notification {
            /// Returns the method of the notification in the typed form.
            pub const fn method(&self) -> &'static str {
                match self.kind() {
                    $($kind => $constant,)*
                }
            }
        }
    };
}

use EventKind as E;
use NotificationKind::{Logged as L, Passing as P};

notifications! {
    L(E::SessionStarted(_)) => SESSION_STARTED_METHOD = "event/sessionStarted";
    L(E::PromptFixed(_)) => PROMPT_FIXED_METHOD = "event/promptFixed";
    L(E::UserMessage { .. }) => USER_MESSAGE_METHOD = "event/userMessage";
    L(E::ContextAdded { .. }) => CONTEXT_ADDED_METHOD = "event/contextAdded";
    L(E::ModelRequested { .. }) => MODEL_REQUESTED_METHOD = "event/modelRequested";
    L(E::AssistantMessage(_)) => ASSISTANT_MESSAGE_METHOD = "event/assistantMessage";
    L(E::ModelFailed { .. }) => MODEL_FAILED_METHOD = "event/modelFailed";
    L(E::CompactionStarted(_)) => COMPACTION_STARTED_METHOD = "event/compactionStarted";
    L(E::ContextCompacted(_)) => CONTEXT_COMPACTED_METHOD = "event/contextCompacted";
    L(E::ToolCallStarted { .. }) => TOOL_CALL_STARTED_METHOD = "event/toolCallStarted";
    L(E::ToolCallFinished { .. }) => TOOL_CALL_FINISHED_METHOD = "event/toolCallFinished";
    L(E::Denied { .. }) => DENIED_METHOD = "event/denied";
    L(E::ApprovalRequested { .. }) => APPROVAL_REQUESTED_METHOD = "event/approvalRequested";
    L(E::ApprovalAnswered(_)) => APPROVAL_ANSWERED_METHOD = "event/approvalAnswered";
    L(E::GrantAdded(_)) => GRANT_ADDED_METHOD = "event/grantAdded";
    L(E::GrantRevoked { .. }) => GRANT_REVOKED_METHOD = "event/grantRevoked";
    L(E::TurnAllowed(_)) => TURN_ALLOWED_METHOD = "event/turnAllowed";
    L(E::TurnAllowanceEnded { .. }) => TURN_ALLOWANCE_ENDED_METHOD = "event/turnAllowanceEnded";
    L(E::ModeChanged { .. }) => MODE_CHANGED_METHOD = "event/modeChanged";
    L(E::ModelChanged(_)) => MODEL_CHANGED_METHOD = "event/modelChanged";
    L(E::WorkerStarted(_)) => WORKER_STARTED_METHOD = "event/workerStarted";
    L(E::RightsChanged(_)) => RIGHTS_CHANGED_METHOD = "event/rightsChanged";
    L(E::WorkerEnded { .. }) => WORKER_ENDED_METHOD = "event/workerEnded";
    L(E::HostsUsed { .. }) => HOSTS_USED_METHOD = "event/hostsUsed";
    L(E::GuestStarted(_)) => GUEST_STARTED_METHOD = "event/guestStarted";
    L(E::GuestEnded(_)) => GUEST_ENDED_METHOD = "event/guestEnded";
    L(E::ToolPinned(_)) => TOOL_PINNED_METHOD = "event/toolPinned";
    L(E::ProtocolViolation { .. }) => PROTOCOL_VIOLATION_METHOD = "event/protocolViolation";
    L(E::Notice { .. }) => NOTICE_METHOD = "event/notice";
    L(E::SubAgentSpawned(_)) => SUB_AGENT_SPAWNED_METHOD = "event/subAgentSpawned";
    L(E::SubAgentResult(_)) => SUB_AGENT_RESULT_METHOD = "event/subAgentResult";
    L(E::WriteTurnAwaited(_)) => WRITE_TURN_AWAITED_METHOD = "event/writeTurnAwaited";
    L(E::WriteTurnTaken(_)) => WRITE_TURN_TAKEN_METHOD = "event/writeTurnTaken";
    L(E::PlanCreated(_)) => PLAN_CREATED_METHOD = "event/planCreated";
    L(E::PlanApproved(_)) => PLAN_APPROVED_METHOD = "event/planApproved";
    L(E::PlanStepStatus(_)) => PLAN_STEP_STATUS_METHOD = "event/planStepStatus";
    L(E::TasksUpdated(_)) => TASKS_UPDATED_METHOD = "event/tasksUpdated";
    L(E::Restored { .. }) => RESTORED_METHOD = "event/restored";
    L(E::FilesChanged(_)) => FILES_CHANGED_METHOD = "event/filesChanged";
    L(E::Rewound(_)) => REWOUND_METHOD = "event/rewound";
    L(E::ChangeSet { .. }) => CHANGE_SET_METHOD = "event/changeSet";
    L(E::TurnFinished(_)) => TURN_FINISHED_METHOD = "event/turnFinished";
    L(E::Result(_)) => RESULT_METHOD = "event/result";
    P(Passing::TextDelta { .. }) => TEXT_DELTA_METHOD = "event/textDelta";
    P(Passing::ThinkingDelta { .. }) => THINKING_DELTA_METHOD = "event/thinkingDelta";
    P(Passing::OutputDelta { .. }) => OUTPUT_DELTA_METHOD = "event/outputDelta";
    P(Passing::DeltasSkipped { .. }) => DELTAS_SKIPPED_METHOD = "event/deltasSkipped";
    P(Passing::ApprovalClosed { .. }) => APPROVAL_CLOSED_METHOD = "event/approvalClosed";
    P(Passing::RewindPreview(_)) => REWIND_PREVIEW_METHOD = "event/rewindPreview";
    P(Passing::PromptExpanded(_)) => PROMPT_EXPANDED_METHOD = "event/promptExpanded";
    P(Passing::ConversationClosed { .. }) => CONVERSATION_CLOSED_METHOD = "event/conversationClosed";
}

/// Notification to a front end.
#[derive(Clone, Debug, PartialEq)]
pub enum Notification {
    /// An event was logged.
    Logged(Box<SessionEvent>),
    /// An event that no log contains.
    Passing {
        /// The session that the notification is about.
        conversation_id: ConversationId,
        /// Kind and data of the event.
        kind: Passing,
    },
}

/// Notification that is not logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum Passing {
    /// The model's reply continues. Void if `model_failed` follows before `assistant_message`.
    TextDelta {
        /// The agent whose reply or call this is.
        agent: AgentId,
        /// The next part of the text.
        text: String,
    },
    /// The model's visible thinking continues.
    ThinkingDelta {
        /// The agent whose reply or call this is.
        agent: AgentId,
        /// The next part of the text.
        text: String,
    },
    /// A command printed something (untrusted, not sanitised).
    OutputDelta {
        /// The agent whose reply or call this is.
        agent: AgentId,
        /// The call whose output this is.
        call: CallId,
        /// The next part of the output, made valid UTF-8.
        text: String,
    },
    /// The front end reads too slowly: parts of replies and outputs were left out. Logged events have the whole texts.
    DeltasSkipped {
        /// The agent whose reply or call this is.
        agent: AgentId,
        /// Number of bytes of text that were left out.
        bytes: u64,
    },
    /// A request for an approval needs no answer any more, whoever decided.
    ApprovalClosed {
        /// The agent that asked.
        agent: AgentId,
        /// Id of the approval.
        id: ApprovalId,
        /// Id of the JSON-RPC request for the approval.
        #[schemars(with = "String")]
        request_id: RequestId,
    },
    /// The text of a prompt of an MCP server, which `getPrompt` requested.
    PromptExpanded(ExpandedPrompt),
    /// The consequences of a requested rewind. `rewind` with the digest of this preview carries it out.
    RewindPreview(RewindPreview),
    /// The conversation has ended, and no notification about it follows.
    ConversationClosed {
        /// Error message, if the conversation ended without a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// Form of notifications that a client chooses: a method for each kind of notification, or one method for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum NotificationForm {
    /// A method for each kind of notification.
    #[default]
    Typed,
    /// One method for all notifications, with the kind as `type`.
    Generic,
}

enum NotificationKind<'a> {
    Logged(&'a EventKind),
    Passing(&'a Passing),
}

/// Position, time and source of a logged event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct Logged {
    /// Position in the log.
    pub id: EventId,
    /// The event that this one follows; absent for the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<EventId>,
    /// Time of the recording in milliseconds since the epoch.
    pub time_ms: u64,
    /// The agent that the event is about.
    pub agent: AgentId,
    /// The agent that started `agent`; absent if no agent did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_agent: Option<AgentId>,
    /// The process that reported the event. Only the supervisor's own reports are trusted.
    pub observed_by: ObservedBy,
}

#[derive(Serialize)]
struct Params {
    v: u32,
    conversation_id: ConversationId,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logged: Option<Logged>,
    data: Box<RawValue>,
}

/// A notification's kind and content, as an adjacently tagged enum has them in JSON.
#[derive(Deserialize)]
struct TaggedNotification {
    r#type: String,
    data: Box<RawValue>,
}

impl Notification {
    /// Returns the notification of an event; `None` for requests for an approval, and if no client can request the
    /// event.
    pub fn of(event: UiEvent) -> Option<Self> {
        let UiEvent { conversation_id, agent, kind } = event;
        let kind = match kind {
            UiEventKind::Logged(event) => return Some(Self::Logged(event)),
            // Requests for approvals are sent as JSON-RPC requests. No client can request names of files, or the
            // branch.
            UiEventKind::ApprovalRequested { .. }
            | UiEventKind::FileNames { .. }
            | UiEventKind::Branch { .. }
            | UiEventKind::ServerPrompts { .. }
            | UiEventKind::LogPaused { .. }
            | UiEventKind::LogGoesOn
            | UiEventKind::SpentBefore { .. } => return None,
            UiEventKind::TextDelta { text } => Passing::TextDelta { agent, text },
            UiEventKind::ThinkingDelta { text } => Passing::ThinkingDelta { agent, text },
            UiEventKind::OutputDelta { call, text } => Passing::OutputDelta { agent, call, text },
            UiEventKind::ApprovalClosed { id } => {
                let request_id = RequestId::of_approval(&conversation_id, &agent, id);
                Passing::ApprovalClosed { agent, id, request_id }
            }
            UiEventKind::PromptExpanded(expanded) => Passing::PromptExpanded(*expanded),
            UiEventKind::RewindPreview(preview) => Passing::RewindPreview(*preview),
        };
        Some(Self::Passing { conversation_id, kind })
    }

    /// Returns the session that the notification is about.
    pub const fn conversation_id(&self) -> &ConversationId {
        match self {
            Self::Logged(event) => &event.session,
            Self::Passing { conversation_id, .. } => conversation_id,
        }
    }

    /// Returns the JSON-RPC method of the notification in the form `form`.
    pub const fn method_in(&self, form: NotificationForm) -> &'static str {
        match form {
            NotificationForm::Typed => self.method(),
            NotificationForm::Generic => SESSION_EVENT_METHOD,
        }
    }

    /// Returns the parameters of the notification in the form `form`, as JSON.
    pub fn params(&self, form: NotificationForm) -> serde_json::Result<Box<RawValue>> {
        let tagged = match self.kind() {
            NotificationKind::Logged(kind) => serde_json::to_string(kind)?,
            NotificationKind::Passing(kind) => serde_json::to_string(kind)?,
        };
        let TaggedNotification { r#type, data } = serde_json::from_str(&tagged)?;
        serde_json::value::to_raw_value(&Params {
            v: SCHEMA,
            conversation_id: self.conversation_id().clone(),
            r#type: (form == NotificationForm::Generic).then_some(r#type),
            logged: self.logged(),
            data,
        })
    }

    const fn kind(&self) -> NotificationKind<'_> {
        match self {
            Self::Logged(event) => NotificationKind::Logged(&event.kind),
            Self::Passing { kind, .. } => NotificationKind::Passing(kind),
        }
    }

    fn logged(&self) -> Option<Logged> {
        let Self::Logged(event) = self else { return None };
        Some(Logged {
            id: event.id,
            parent: event.parent,
            time_ms: event.time_ms,
            agent: event.agent.clone(),
            parent_agent: event.parent_agent.clone(),
            observed_by: event.observed_by,
        })
    }
}

/// True if this version knows events of this type.
pub fn is_event_type(r#type: &str) -> bool {
    NOTIFICATION_METHODS.iter().filter_map(|method| type_of(method)).any(|known| known == r#type)
}

/// Returns the kind of event of a method of the typed form: `event/toolCallStarted` → `tool_call_started`.
pub(in crate::rpc) fn type_of(method: &str) -> Option<String> {
    let camel = NOTIFICATION_METHODS.contains(&method).then(|| method.strip_prefix(TYPED))??;
    let mut snake = String::new();
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    Some(snake)
}
