//! Kinds of events.

use std::fmt;

use ipc::denial::Denial;
use ipc::id::{AgentCall, ApprovalId, CallId, Generation, GrantId, ToolUseId};
use ipc::image::Image;
use ipc::path::WirePath;
use ipc::rights::RightsSummary;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    ApprovalAnswered, AssistantMessage, ChangedFile, CompactionStarted, ContextCompacted, FailureKind,
    FileDiff, FilesChanged, GuestEnded, GuestStarted, HostUse, LeftOut, Location, ModelChanged, NoticeCode,
    PlanApproved, PlanCreated, PlanStepStatus, PromptFixed, Recorded, RestoredPlace, Rewound, RightsChanged,
    RunResult, SessionStarted, SubAgentResult, SubAgentSpawned, TasksUpdated, ToolKind, ToolPinned,
    TurnAllowanceEnd, TurnAllowed, TurnFinished, WorkerEnd, WorkerStarted, WriteTurnAwaited, WriteTurnTaken,
};
use crate::approval::{ApprovalMode, ServerRequest, SessionGrant};

/// Kind of an event, with its facts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum EventKind {
    /// The session started, or continues in another run.
    SessionStarted(SessionStarted),
    /// The agent has this system prompt and these tools from now on.
    PromptFixed(PromptFixed),
    /// The user said something.
    UserMessage {
        /// The text itself.
        text: String,
        /// The pictures before the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// Text for the model other than the user's words.
    ContextAdded {
        /// Source of the text: `environment`, `AGENTS.md` …
        source: String,
        /// The text as the model receives it. Text from files of the project is untrusted.
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
    /// A reply of the model is incomplete.
    ModelFailed {
        /// The kind of the error.
        kind: FailureKind,
        /// Description of the failure, for people.
        message: String,
        /// True if a part of the reply had arrived: it is void, and not in the conversation.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        discarded: bool,
        /// Time until the next attempt in milliseconds; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
        /// The part of the conversation that the provider rejects, if the request is sent again without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_out: Option<LeftOut>,
    },
    /// The context is about to be summarised: the next requests are for the summary.
    CompactionStarted(CompactionStarted),
    /// A new context has begun, with a summary of the one before.
    ContextCompacted(ContextCompacted),
    /// A tool call is about to be carried out.
    ToolCallStarted {
        /// The id that the session gave the call; it is also the id in its other events.
        call: CallId,
        /// The model's id of it.
        tool_use: ToolUseId,
        /// Name of the tool as the model wrote it; it may be one that no tool has.
        name: String,
        /// Kind of work that the tool does, by the names of ACP.
        #[serde(default)]
        kind: ToolKind,
        /// The places that its arguments name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        /// The arguments, exactly as the model wrote them.
        #[schemars(with = "serde_json::Value")]
        input: Box<RawValue>,
    },
    /// A tool call ended, one way or another.
    ToolCallFinished {
        /// The id that the session gave the call; it is also the id in its other events.
        call: CallId,
        /// The model's id of it.
        tool_use: ToolUseId,
        /// The final status.
        status: ToolCallStatus,
        /// The result as the model receives it.
        content: String,
        /// Number of bytes at the end of `content` that repeat this call's `denied` events and the access.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        explanation_bytes: Option<u64>,
        /// Duration in milliseconds.
        duration_ms: u64,
        /// The changes of files that it made by the file tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        diffs: Vec<FileDiff>,
        /// True if its changes are left out, since they are too large or no text.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        diffs_left_out: bool,
        /// The pictures that the model is shown with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// Something was beyond the agent's access.
    Denied {
        /// The call that tried it; absent for a process that outlived its call, or was ended with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The denied act, the reason, and how to allow it.
        #[serde(flatten)]
        denial: Denial,
        /// Access without any approval.
        rights: Recorded<RightsSummary>,
    },
    /// Somebody is asked if a call may exceed the agent's access.
    ApprovalRequested {
        /// The id that the answer names.
        id: ApprovalId,
        /// The request as it was shown.
        request: Box<ServerRequest>,
    },
    /// A request for an approval is decided, with the author and the reason.
    ApprovalAnswered(ApprovalAnswered),
    /// An approval reaches further than its call, until the session ends or it is revoked.
    GrantAdded(SessionGrant),
    /// An approval for the session ended.
    GrantRevoked {
        /// The id from `grant_added`.
        id: GrantId,
    },
    /// The user said yes to everything in the turn of a call.
    TurnAllowed(TurnAllowed),
    /// The access of a whole turn has ended; the earlier access follows.
    TurnAllowanceEnded {
        /// The reason for it.
        cause: TurnAllowanceEnd,
    },
    /// The approval mode changed: the handling of calls that need more than the permanent access.
    ModeChanged {
        /// The new mode.
        mode: ApprovalMode,
    },
    /// Another model answers from now on.
    ModelChanged(ModelChanged),
    /// A worker is ready, and verified from outside.
    WorkerStarted(WorkerStarted),
    /// The access changed: the earlier worker has ended with all descendants, and this one serves.
    RightsChanged(RightsChanged),
    /// A worker is gone.
    WorkerEnded {
        /// The generation of the worker that ended.
        generation: Generation,
        /// The end of its run, the exit status or signal of its process, or the fault for which it was killed.
        reason: Recorded<WorkerEnd>,
    },
    /// Hosts that an agent reached by name, or could not: each the first time, and all of a worker's with their bytes
    /// at its end.
    HostsUsed {
        /// The generation of the worker.
        generation: Generation,
        /// The uses, counted since the start of the worker.
        uses: Vec<HostUse>,
    },
    /// A guest is ready, and verified from outside.
    GuestStarted(Box<GuestStarted>),
    /// A guest is gone: one for each that started, before the end of what it belonged to.
    GuestEnded(GuestEnded),
    /// The tools of a server that the session goes by, or a difference of the started server from them.
    ToolPinned(ToolPinned),
    /// A worker broke the protocol and was killed for it.
    ProtocolViolation {
        /// The generation of the worker that was killed.
        generation: Generation,
        /// The message that was not allowed, in a phrase of the supervisor.
        violation: String,
    },
    /// Something that a person should know.
    Notice {
        /// Word for programs; `message` is for people.
        code: NoticeCode,
        /// A sentence for people.
        message: String,
    },
    /// An agent starts a sub-agent.
    SubAgentSpawned(SubAgentSpawned),
    /// A sub-agent has ended with its last process.
    SubAgentResult(SubAgentResult),
    /// A call waits for another agent's turn at writing to end.
    WriteTurnAwaited(WriteTurnAwaited),
    /// A call that waited for other agents continues.
    WriteTurnTaken(WriteTurnTaken),
    /// A plan was written to its file.
    PlanCreated(Box<PlanCreated>),
    /// A plan may be executed.
    PlanApproved(PlanApproved),
    /// A step of a plan has come further.
    PlanStepStatus(PlanStepStatus),
    /// The list of tasks that an agent keeps changed.
    TasksUpdated(TasksUpdated),
    /// A change of a file that the host runs later was reverted.
    Restored {
        /// The call after which it was found; absent at the end of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Other calls that ran since the previous check: one of them may have made the change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beside: Vec<AgentCall>,
        /// Each place with its change, and the outcome of its restoration.
        places: Vec<RestoredPlace>,
    },
    /// Files changed between two checks of the project, by any program.
    FilesChanged(FilesChanged),
    /// Files, the conversation or both were taken back to a message of the user's.
    Rewound(Rewound),
    /// The change of the project's files since the session began.
    ChangeSet {
        /// The files, in order.
        files: Vec<ChangedFile>,
        /// Path of the patch, if one was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<WirePath>,
    },
    /// The agent rests; another message of the user may follow. Headless runs have [`Result`](Self::Result) instead.
    TurnFinished(TurnFinished),
    /// The end of a run: its last event.
    Result(RunResult),
}

/// Compares JSON text, since raw text has no other equality.
impl PartialEq for EventKind {
    fn eq(&self, other: &Self) -> bool {
        match (serde_json::to_string(self), serde_json::to_string(other)) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

/// Result of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum ToolCallStatus {
    /// The call succeeded.
    Completed,
    /// The call failed.
    Failed,
    /// The call needed more than the access.
    Denied,
    /// The call was interrupted: by the user, a time-out, or the end of its worker.
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
