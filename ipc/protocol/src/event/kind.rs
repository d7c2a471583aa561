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
    /// The user sent a message to the agent.
    UserMessage {
        /// The text of the message.
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
        /// Number of the step in this run, from 1. Each step is one reply of the model.
        step: u32,
        /// Number of the attempt at this step, from 1.
        attempt: u32,
    },
    /// A reply of the model was complete.
    AssistantMessage(AssistantMessage),
    /// A reply of the model is incomplete.
    ModelFailed {
        /// The kind of the failure.
        kind: FailureKind,
        /// Description of the failure, for people.
        message: String,
        /// True if a part of the reply had arrived. That part is not in the conversation.
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
        /// Id that the session gave the call, by which other events name it.
        call: CallId,
        /// The model's id of the call.
        tool_use: ToolUseId,
        /// Name of the tool, as the model wrote it. There may be no such tool.
        name: String,
        /// Kind of work that the tool does, in the words of the Agent Client Protocol.
        #[serde(default)]
        kind: ToolKind,
        /// The files and directories that the arguments name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        /// The arguments, exactly as the model wrote them.
        #[schemars(with = "serde_json::Value")]
        input: Box<RawValue>,
    },
    /// A tool call ended: it succeeded, failed, was denied or was interrupted.
    ToolCallFinished {
        /// Id that the session gave the call, by which other events name it.
        call: CallId,
        /// The model's id of the call.
        tool_use: ToolUseId,
        /// Status of the call at its end.
        status: ToolCallStatus,
        /// The result as the model receives it.
        content: String,
        /// Number of bytes at the end of `content` that repeat this call's `denied` events and the access.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        explanation_bytes: Option<u64>,
        /// Duration of the call in milliseconds.
        duration_ms: u64,
        /// The changes of files that the call made by the file tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        diffs: Vec<FileDiff>,
        /// True if `diffs` leaves out the call's changes, since they are too large or no text.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        diffs_left_out: bool,
        /// The pictures that the model gets with the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// An operation was denied, because the agent's access does not include it.
    Denied {
        /// The call that tried the operation; absent for a process that outlived its call, or was ended with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The denied operation, the reason, and the way to allow it.
        #[serde(flatten)]
        denial: Denial,
        /// Access that the agent has without any approval.
        rights: Recorded<RightsSummary>,
    },
    /// Somebody is asked if a call may exceed the agent's access.
    ApprovalRequested {
        /// Id of the request, which the answer repeats.
        id: ApprovalId,
        /// The request, as it was shown.
        request: Box<ServerRequest>,
    },
    /// A request for an approval is decided, with the author and the reason.
    ApprovalAnswered(ApprovalAnswered),
    /// An approval holds for more than its call: until the session ends or the user revokes it.
    GrantAdded(SessionGrant),
    /// An approval for the session ended.
    GrantRevoked {
        /// Id of the approval, as in the event `grant_added`.
        id: GrantId,
    },
    /// The user approved everything in the turn of a call.
    TurnAllowed(TurnAllowed),
    /// The access that the user gave for a whole turn has ended; the earlier access holds again.
    TurnAllowanceEnded {
        /// The reason for the end.
        cause: TurnAllowanceEnd,
    },
    /// The approval mode changed: the handling of calls that need more than the standing access.
    ModeChanged {
        /// The new mode.
        mode: ApprovalMode,
    },
    /// Another model answers from now on.
    ModelChanged(ModelChanged),
    /// A worker is ready, and the supervisor has verified its confinement.
    WorkerStarted(WorkerStarted),
    /// The access changed: the earlier worker has ended with all descendants, and a new one serves.
    RightsChanged(RightsChanged),
    /// A worker has ended.
    WorkerEnded {
        /// The generation of the worker that ended.
        generation: Generation,
        /// The end of the run, the exit status or signal of the worker, or the fault for which it was killed.
        reason: Recorded<WorkerEnd>,
    },
    /// Hosts that an agent connected to by name, or tried to. A host is reported at its first use. At a worker's end
    /// all its hosts are reported, with their bytes.
    HostsUsed {
        /// The generation of the worker.
        generation: Generation,
        /// The uses of hosts, counted since the start of the worker.
        uses: Vec<HostUse>,
    },
    /// A guest is ready, and the supervisor has verified its confinement.
    GuestStarted(Box<GuestStarted>),
    /// A guest has ended. Each started guest has one such event, before the end of the worker or agent that it served.
    GuestEnded(GuestEnded),
    /// The tools of an MCP server that the user approved, or a difference between these and the started server's tools.
    ToolPinned(ToolPinned),
    /// A worker broke the protocol, and was killed for it.
    ProtocolViolation {
        /// The generation of the worker that was killed.
        generation: Generation,
        /// The message that was not allowed, in a phrase of the supervisor.
        violation: String,
    },
    /// Information that a person should have.
    Notice {
        /// Kind of the notice, for programs; `message` is for people.
        code: NoticeCode,
        /// A sentence for people.
        message: String,
    },
    /// An agent starts a sub-agent.
    SubAgentSpawned(SubAgentSpawned),
    /// A sub-agent has ended with its last process.
    SubAgentResult(SubAgentResult),
    /// A call that may write waits until other agents have finished writing.
    WriteTurnAwaited(WriteTurnAwaited),
    /// A call that waited for other agents continues.
    WriteTurnTaken(WriteTurnTaken),
    /// A plan was written to its file.
    PlanCreated(Box<PlanCreated>),
    /// A plan may be executed: it was approved.
    PlanApproved(PlanApproved),
    /// The status of a step of a plan changed.
    PlanStepStatus(PlanStepStatus),
    /// The list of tasks that an agent keeps changed.
    TasksUpdated(TasksUpdated),
    /// A change of a file that the host runs later was reverted.
    Restored {
        /// The call after which the change was found; absent at the end of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Other calls that ran since the previous check: one of them may have made the change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beside: Vec<AgentCall>,
        /// The changed paths, each with its change and the outcome of the restoration.
        places: Vec<RestoredPlace>,
    },
    /// Files changed between two checks of the project, by any program.
    FilesChanged(FilesChanged),
    /// Files, the conversation or both were restored as of a message of the user.
    Rewound(Rewound),
    /// The files of the project that changed since the session began.
    ChangeSet {
        /// The changed files, in order.
        files: Vec<ChangedFile>,
        /// Path of the patch, if one was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<WirePath>,
    },
    /// The agent's turn ended; the user may send another message. Headless runs have [`Result`](Self::Result) instead.
    TurnFinished(TurnFinished),
    /// The end of a run: its last event.
    Result(RunResult),
}

/// Compares events by their JSON text, since raw JSON cannot be compared otherwise.
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
    /// The call needed more access than the agent has.
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
