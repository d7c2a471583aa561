//! Inputs and outputs of the state machine.

use std::sync::Arc;
use std::time::Duration;

use gate::Change;
use gate::activity::Activity;
use gate::approval::{KeptSetting, Proposal};
use gate::tools::{ServedCall, SpawnAgent};
use ipc::confinement::Tier;
use ipc::id::{ApprovalId, CallId, Generation};
use ipc::image::Image;
use ipc::mcp::{McpAnswer, McpForm};
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::refusal::Refusal;
use ipc::rights::{Grant, HostRule, Rights};
use ipc::tool::ToolCall;
use protocol::approval::ServerRequest;
use protocol::cost::Usd;
use protocol::event::{DecidedBy, EventKind, ObservedBy, SubAgentResult};
use protocol::frontend::{Op, UiEventKind};

use super::{EndReason, Execution, ModelChoice, Planning, RunEnd};
use crate::conversation::{ModelRequest, ProviderError, StreamEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub u64);

/// Text for the model besides the user's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextItem {
    /// Origin of the text, such as `environment` or `AGENTS.md`.
    pub source: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyWorker {
    pub generation: Generation,
    pub pid: u32,
    /// Sandbox tier of the worker. The tier determines the paths that tool calls see.
    pub tier: Tier,
    /// SHA-256 of the worker's access.
    pub rights_digest: String,
    /// SHA-256 of the worker's access and the rules by which the kernel enforces it.
    pub ruleset_digest: String,
}

/// The outcome of a call that no worker carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedOutcome {
    /// Untrusted text for the model.
    Answered(String),
    /// Untrusted text for the model, with pictures. The text says where each picture belongs.
    Pictured(String, Vec<Image>),
    /// Untrusted error text of the tool.
    Failed(String),
    /// Nobody carried out the call, for this reason.
    Unserved(String),
    Late(Duration),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallProgress {
    /// Output so far; a note in the middle has the size of the omitted part.
    pub output: String,
    pub duration_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostQuestionId {
    pub generation: Generation,
    pub number: u64,
}

/// A host that is not on the list of allowed hosts, and to which a running command connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAsked {
    /// Id of the question. The driver gets exactly one [`Effect::AnswerHost`] with it.
    pub id: HostQuestionId,
    /// Call of the one-shot worker that asks; `None` for the standing worker, which may serve several calls at a time.
    pub call: Option<CallId>,
    /// Id of the command's process, from which the connecting process descends.
    pub process: u32,
    pub host: HostRule,
    /// Name that the connecting process has set for itself.
    pub program: String,
}

/// A question of an MCP server to the person, during a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormAsked {
    /// Id of the question, never used again. The driver gets exactly one [`Effect::AnswerForm`] with it.
    pub id: u64,
    pub call: CallId,
    /// Text of the MCP server for the person.
    pub message: String,
    pub form: McpForm,
}

/// A new sub-agent, as its parent requests it.
#[derive(Clone, Debug)]
pub struct NewAgent {
    pub spawn: SpawnAgent,
    /// The access of the sub-agent, with host paths and without a private temp directory.
    pub rights: Rights,
    /// The part of the access that was approved because the parent itself does not have it.
    pub grant: Grant,
    pub purpose: Purpose,
}

#[derive(Clone, Debug)]
pub enum Purpose {
    /// A task. The sub-agent plans or executes, like its parent.
    Task(Activity),
    Planner(Box<Planning>),
    Executor(Arc<Execution>),
}

impl Purpose {
    pub const fn activity(&self) -> Activity {
        match self {
            Self::Task(activity) => *activity,
            Self::Planner(_) => Activity::Plan,
            Self::Executor(_) => Activity::Execute,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Estimated tokens of the prompt, plus those of the longest possible reply.
    pub tokens: u64,
    /// Maximum cost; `None` if the model's prices are unknown.
    pub cost: Option<Usd>,
}

#[derive(Clone, Debug)]
pub enum Input {
    Op(Op),
    /// The agent continues with another model of the same provider.
    Model(Box<ModelChoice>),
    /// Text for the model, in the next user message.
    Context(Vec<ContextItem>),
    Stream {
        request: RequestId,
        event: StreamEvent,
    },
    StreamFailed {
        request: RequestId,
        error: ProviderError,
    },
    CallFinished {
        call: CallId,
        outcome: CallOutcome,
        duration_ms: u64,
    },
    /// Progress of an open call. The driver sends this input before every input that may end the call early.
    Progress {
        call: CallId,
        progress: CallProgress,
    },
    /// Text for the end of an open call's result.
    Remark {
        call: CallId,
        text: String,
    },
    /// Denials for processes that belong to no call.
    Refused(Vec<Refusal>),
    /// A connection to a host that is not on the list of allowed hosts waits for an answer.
    HostAsked(HostAsked),
    FormAsked(FormAsked),
    CallLost {
        call: CallId,
        /// The reason why the worker ended, so that the call gets no result.
        reason: String,
    },
    Prepared {
        call: CallId,
        proposal: Proposal,
    },
    NotPrepared {
        call: CallId,
        reason: String,
    },
    /// The search for the directory of a denied path has ended.
    Located {
        call: CallId,
        /// Canonical path of the directory; `None` if no access to the denied path can be granted.
        place: Option<WirePath>,
    },
    /// A request for an approval ended without a valid answer.
    Lapsed {
        id: ApprovalId,
        by: DecidedBy,
        cause: String,
    },
    /// An approved effect was carried out, or its one-shot worker ended too early.
    OneShotFinished {
        call: CallId,
        /// An `Err` says why the outcome is unknown.
        outcome: Result<CallOutcome, String>,
        duration_ms: u64,
    },
    Served {
        call: CallId,
        outcome: ServedOutcome,
        duration_ms: u64,
    },
    /// A sub-agent and all its processes have ended.
    AgentFinished {
        call: CallId,
        report: Box<SubAgentResult>,
    },
    /// The access of a parent or of an agent above it was reduced, and with it the access of this agent.
    Narrowed {
        /// The remaining access, with host paths.
        rights: Rights,
    },
    /// The user reduced the access of some agent of the session. Plans cannot give the removed access any more.
    TakenBack(Change),
    /// The session's budget does not suffice for a request, which was therefore not sent.
    OutOfBudget {
        request: RequestId,
        reason: EndReason,
        /// A sentence for the user.
        message: String,
    },
    WorkerReady(ReadyWorker),
    /// The worker with new access did not start.
    NotReplaced {
        reason: String,
    },
    /// No front end is left that could show or answer anything.
    FrontEndGone,
    Timer(TimerId),
    /// The run's time limit is reached.
    TimeUp,
    /// The run cannot continue, for a reason outside the conversation.
    Broken {
        reason: EndReason,
        message: String,
    },
}

#[allow(clippy::large_enum_variant, reason = "most effects are events to log, which are moved a few times")]
#[derive(Clone, Debug)]
pub enum Effect {
    StartStream {
        request: RequestId,
        model: ModelRequest,
        /// Maximum cost of the request, for the budget.
        estimate: Estimate,
    },
    /// Cancels a request. The agent ignores all later events of the request.
    CancelStream(RequestId),
    Dispatch {
        call: CallId,
        tool: ToolCall,
    },
    Prepare {
        call: CallId,
        tool: ToolCall,
    },
    /// Looks for the nearest existing directory of a denied path; the answer is [`Input::Located`].
    Locate {
        call: CallId,
        path: WirePath,
    },
    RequestApproval {
        id: ApprovalId,
        request: Box<ServerRequest>,
    },
    AnswerHost {
        id: HostQuestionId,
        allowed: bool,
    },
    AnswerForm {
        id: u64,
        answer: McpAnswer,
    },
    /// Closes the request at the front end, whoever decided on it.
    CloseApproval(ApprovalId),
    /// Writes an approval for the whole project into the user's settings.
    Keep(KeptSetting),
    /// Carries out an approved effect in a one-shot worker.
    CarryOut {
        call: CallId,
        effect: Arc<ipc::effect::Effect>,
        grant: Grant,
    },
    /// Starts a call without a worker. An approved call of an MCP server starts when its approval is synced to disk.
    Serve {
        call: CallId,
        served: ServedCall,
        timeout: Duration,
    },
    /// Starts a sub-agent; its end is the call's result.
    SpawnAgent {
        call: CallId,
        agent: Box<NewAgent>,
    },
    /// Ends a call. Its outcome will be ignored.
    CancelCall(CallId),
    /// Ends the worker with its descendants, then starts a worker with this access. Calls wait for the new worker.
    ReplaceWorker {
        rights: Rights,
    },
    StartTimer {
        id: TimerId,
        after: Duration,
    },
    Log {
        kind: EventKind,
        observed_by: ObservedBy,
    },
    /// Shows an event at the front end.
    Show(UiEventKind),
    /// The run has ended. Another turn of the user may follow.
    Finish(RunEnd),
}
