//! What goes into the state machine, and what comes out.

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

/// One attempt at a reply. Each attempt has an identifier of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A timer that the driver was asked to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub u64);

/// Something that the model is told besides the user's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextItem {
    /// Source of it: `environment`, `AGENTS.md` …
    pub source: String,
    pub text: String,
}

/// A worker that is ready for tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyWorker {
    /// Number of the worker among those of its agent.
    pub generation: Generation,
    /// Process id of the worker.
    pub pid: u32,
    /// The sandbox tier that confines the worker; it decides which paths tool calls see.
    pub tier: Tier,
    /// SHA-256 of the worker's rights.
    pub rights_digest: String,
    /// SHA-256 of the worker's rights and of the rules by which the kernel enforces them.
    pub ruleset_digest: String,
}

/// The outcome of a call that no worker serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedOutcome {
    /// Text for the model: nothing that the supervisor believes or acts on.
    Answered(String),
    /// The same, with pictures whose places the text names.
    Pictured(String, Vec<Image>),
    /// The tool failed; its own words, of the same worth.
    Failed(String),
    /// Nobody served it, and why.
    Unserved(String),
    /// There was no answer within this time.
    Late(Duration),
}

/// The progress of a call that has no result yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallProgress {
    /// The output so far; a note in the middle says how much of it is left out.
    pub output: String,
    /// Milliseconds since the call began.
    pub duration_ms: u64,
}

/// A question of a worker's gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostQuestionId {
    pub generation: Generation,
    /// The number of the question.
    pub number: u64,
}

/// A host beyond the list that a running command connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAsked {
    /// The question. It is answered once, with [`Effect::AnswerHost`].
    pub id: HostQuestionId,
    /// The call that an approved worker carries out; absent for the standing worker, which may serve several.
    pub call: Option<CallId>,
    /// The process below which the connection is made, as in the result of a command.
    pub process: u32,
    pub host: HostRule,
    /// Name that the connecting process gives itself.
    pub program: String,
}

/// A question of a server to a person, while the server carries out a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormAsked {
    /// Number of the question, never used again. It is answered once, with [`Effect::AnswerForm`].
    pub id: u64,
    pub call: CallId,
    /// Words of the server.
    pub message: String,
    pub form: McpForm,
}

/// A sub-agent to be, as far as its parent decides.
#[derive(Clone, Debug)]
pub struct NewAgent {
    /// The call, as the model wrote it.
    pub spawn: SpawnAgent,
    /// Its rights, with the host's own paths and without a private temp.
    pub rights: Rights,
    /// The part of them that its parent does not have, and that was approved.
    pub grant: Grant,
    pub purpose: Purpose,
}

/// The purpose of a sub-agent.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// A task of its parent's, within its parent's activity.
    Task(Activity),
    /// To make a plan.
    Planner(Box<Planning>),
    /// To execute an approved plan.
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

/// The most that a request may come to, as far as that can be told beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Its tokens: an estimate of the prompt, and the longest reply.
    pub tokens: u64,
    /// The price of them, where the model's prices are known.
    pub cost: Option<Usd>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The user wants something.
    Op(Op),
    /// Another model of the same provider is to answer from now on.
    Model(Box<ModelChoice>),
    /// Something that the model has to know; it joins the next user message.
    Context(Vec<ContextItem>),
    /// A reply goes on.
    Stream {
        request: RequestId,
        event: StreamEvent,
    },
    StreamFailed {
        request: RequestId,
        error: ProviderError,
    },
    /// A worker answered a call.
    CallFinished {
        call: CallId,
        outcome: CallOutcome,
        /// Its duration in milliseconds.
        duration_ms: u64,
    },
    /// The progress of an open call. It precedes every input that may end the call before it is done.
    Progress {
        call: CallId,
        progress: CallProgress,
    },
    /// Something that the result of an open call has to end with.
    Remark {
        call: CallId,
        /// The words for the model.
        text: String,
    },
    /// The broker refused this to processes of which no call has a result.
    Refused(Vec<Refusal>),
    /// A command connects to a host beyond the list, and the connection waits.
    HostAsked(HostAsked),
    /// A server asks a person something.
    FormAsked(FormAsked),
    /// A call will never be answered: its worker is gone.
    CallLost {
        call: CallId,
        /// The fate of the worker, in a phrase.
        reason: String,
    },
    /// The effect of a call that was to be prepared.
    Prepared {
        call: CallId,
        proposal: Proposal,
    },
    /// The effect of a call cannot be proposed.
    NotPrepared {
        call: CallId,
        /// The reason, in a sentence.
        reason: String,
    },
    /// The place was looked for that a denied path lies in.
    Located {
        call: CallId,
        /// The place, canonical; none where there is none that could be granted.
        place: Option<WirePath>,
    },
    /// A request for an approval is over without an answer that counts.
    Lapsed {
        id: ApprovalId,
        /// The one who did not decide.
        by: DecidedBy,
        cause: String,
    },
    /// An approved effect has been carried out, or not; its worker is gone.
    OneShotFinished {
        call: CallId,
        /// The outcome, or the reason why there is no telling.
        outcome: Result<CallOutcome, String>,
        /// Its duration in milliseconds.
        duration_ms: u64,
    },
    /// A call that no worker serves is over.
    Served {
        call: CallId,
        outcome: ServedOutcome,
        /// Its duration in milliseconds.
        duration_ms: u64,
    },
    /// A sub-agent is over, to its last process.
    AgentFinished {
        /// The call that started it.
        call: CallId,
        report: Box<SubAgentResult>,
    },
    /// The rights of an agent above this one became less, and these are what is left of its own.
    Narrowed {
        /// The rights, with the host's own paths.
        rights: Rights,
    },
    /// The user took something back, of whatever agent: a plan is given no more than what is left.
    TakenBack(Change),
    /// The session's budget has nothing left for a request that has not gone out.
    OutOfBudget {
        request: RequestId,
        /// The limit that is reached.
        reason: EndReason,
        /// A sentence that says so.
        message: String,
    },
    /// A generation of the worker is ready.
    WorkerReady(ReadyWorker),
    /// The worker that was to have the new rights did not come to be, and no other will without a further change.
    NotReplaced {
        /// The reason, in a sentence.
        reason: String,
    },
    /// Nobody is there any more who could see or answer anything.
    FrontEndGone,
    Timer(TimerId),
    /// The run's time is spent.
    TimeUp,
    /// The run cannot go on, for a reason outside the conversation.
    Broken {
        /// The consequence for the run.
        reason: EndReason,
        /// The event, in a sentence.
        message: String,
    },
}

/// Something to be done by the driver.
#[allow(clippy::large_enum_variant, reason = "most effects are events to log, which are moved a few times")]
#[derive(Clone, Debug)]
pub enum Effect {
    /// Sends a request to the model.
    StartStream {
        request: RequestId,
        model: ModelRequest,
        /// The most that it may come to.
        estimate: Estimate,
    },
    /// Ends a request; nothing that it brings is waited for any more.
    CancelStream(RequestId),
    /// Sends a call to the worker.
    Dispatch {
        call: CallId,
        /// The task.
        tool: ToolCall,
    },
    /// Asks the worker for the effect of a call.
    Prepare {
        call: CallId,
        /// The call to prepare.
        tool: ToolCall,
    },
    /// Looks for the nearest place of a denied path that exists; the answer is [`Input::Located`].
    Locate { call: CallId, path: WirePath },
    /// Logs a request for an approval and asks the front end; what comes of it is an [`Op`] or [`Input::Lapsed`].
    RequestApproval { id: ApprovalId, request: Box<ServerRequest> },
    /// Answers the question about a host.
    AnswerHost {
        id: HostQuestionId,
        /// True if the connections may go on.
        allowed: bool,
    },
    /// Answers the question of a server.
    AnswerForm { id: u64, answer: McpAnswer },
    /// A request is over, whoever decided.
    CloseApproval(ApprovalId),
    /// Writes an approval for the project into the person's settings.
    Keep(KeptSetting),
    /// Carries an approved effect out, in a worker of its own.
    CarryOut {
        call: CallId,
        effect: Arc<ipc::effect::Effect>,
        /// Its access beyond the standing rights.
        grant: Grant,
    },
    /// Has a call served that is no worker's. One of an external tool was approved: it begins when that is on the disk.
    Serve {
        call: CallId,
        /// The task.
        served: ServedCall,
        /// The longest that an answer may take.
        timeout: Duration,
    },
    /// Starts a sub-agent; its end is the call's result.
    SpawnAgent { call: CallId, agent: Box<NewAgent> },
    /// Ends a call; its outcome is not waited for any more.
    CancelCall(CallId),
    /// Ends the worker to its last descendant, then starts one with these rights. Calls that are sent meanwhile wait
    /// for it.
    ReplaceWorker {
        /// The rights, with the host's own paths.
        rights: Rights,
    },
    StartTimer {
        id: TimerId,
        /// When it fires.
        after: Duration,
    },
    /// Appends an event to the session log.
    Log { kind: EventKind, observed_by: ObservedBy },
    /// Tells the front end.
    Show(UiEventKind),
    /// The run is over and the agent rests; another user turn may follow.
    Finish(RunEnd),
}
