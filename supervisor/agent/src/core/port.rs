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
    /// Such as `environment` and `AGENTS.md`.
    pub source: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyWorker {
    pub generation: Generation,
    pub pid: u32,
    /// Determines the paths that tool calls see.
    pub tier: Tier,
    /// SHA-256 of the worker's access.
    pub rights_digest: String,
    /// SHA-256 of the worker's access and the rules by which the kernel enforces it.
    pub ruleset_digest: String,
}

/// The outcome of a call that no worker serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedOutcome {
    /// Text for the model, untrusted.
    Answered(String),
    /// The same, with pictures whose places the text names.
    Pictured(String, Vec<Image>),
    /// The tool's error text, untrusted.
    Failed(String),
    /// The reason why nobody served the call.
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

/// A host beyond the list that a running command connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAsked {
    /// Answered once, with [`Effect::AnswerHost`].
    pub id: HostQuestionId,
    /// The call of an approved worker; `None` for the main worker, which may serve several.
    pub call: Option<CallId>,
    /// The process from which the connecting one descends, as in the result of a command.
    pub process: u32,
    pub host: HostRule,
    /// Name that the connecting process has set for itself.
    pub program: String,
}

/// A question of a server to a person, during a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormAsked {
    /// Never used again. Answered once, with [`Effect::AnswerForm`].
    pub id: u64,
    pub call: CallId,
    /// Text of the server.
    pub message: String,
    pub form: McpForm,
}

/// A new sub-agent, as its parent requests it.
#[derive(Clone, Debug)]
pub struct NewAgent {
    pub spawn: SpawnAgent,
    /// Host paths, without a private temp directory.
    pub rights: Rights,
    /// The approved part that the parent itself does not have.
    pub grant: Grant,
    pub purpose: Purpose,
}

/// The purpose of a sub-agent.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// A task with the parent's activity.
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
    /// An estimate of the prompt, and the longest reply.
    pub tokens: u64,
    /// `None` if the model's prices are unknown.
    pub cost: Option<Usd>,
}

#[derive(Clone, Debug)]
pub enum Input {
    Op(Op),
    /// Another model of the same provider answers from now on.
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
    /// Progress of an open call, before every input that may end the call early.
    Progress {
        call: CallId,
        progress: CallProgress,
    },
    /// Text for the end of an open call's result.
    Remark {
        call: CallId,
        text: String,
    },
    /// Denials for processes without a call.
    Refused(Vec<Refusal>),
    /// A connection to a host beyond the list waits.
    HostAsked(HostAsked),
    FormAsked(FormAsked),
    CallLost {
        call: CallId,
        /// A call will never be answered: its worker has ended.
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
        /// Canonical; `None` if nothing can be granted.
        place: Option<WirePath>,
    },
    /// A request for an approval ended without a valid answer.
    Lapsed {
        id: ApprovalId,
        by: DecidedBy,
        cause: String,
    },
    /// An approved effect was executed, or its worker ended before.
    OneShotFinished {
        call: CallId,
        /// The error is the reason why the outcome is unknown.
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
    /// The access of an agent above was reduced, and with it this agent's.
    Narrowed {
        /// Access with paths as the host names them.
        rights: Rights,
    },
    /// The user reduced the access of some agent: plans get no more than the rest.
    TakenBack(Change),
    /// The session's budget does not suffice for a request that was not sent.
    OutOfBudget {
        request: RequestId,
        reason: EndReason,
        /// A sentence for people.
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
    /// Ends a request, whose events are ignored from now on.
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
    /// Closes a request, whoever decided.
    CloseApproval(ApprovalId),
    /// Writes an approval for the project into the person's settings.
    Keep(KeptSetting),
    /// Executes an approved effect in another worker.
    CarryOut {
        call: CallId,
        effect: Arc<ipc::effect::Effect>,
        grant: Grant,
    },
    /// Serves a call without a worker. An approved call of an MCP server begins after the approval is on the disk.
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
    /// Ends a call, whose outcome is ignored.
    CancelCall(CallId),
    /// Ends the worker with its descendants, then starts one with this access. Calls wait for it.
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
    /// Tells the front end.
    Show(UiEventKind),
    /// The run has ended, and another turn of the user may follow.
    Finish(RunEnd),
}
