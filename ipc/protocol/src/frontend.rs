//! Messages between the core and a front end: the TUI, `exec`, and JSON-RPC ([`crate::rpc`]).

use ipc::id::{AgentId, ApprovalId, CallId, ConversationId, EventId, GrantId};
use ipc::image::Image;
use ipc::path::WirePath;
use ipc::rights::RightsChange;

use crate::approval::{ApprovalAnswer, ApprovalMode, AskKind, ReviewDecision, ServerRequest};
use crate::event::{Account, RewindPreview, RewindTarget, SessionEvent};
use crate::plan::Plan;
use crate::server_prompt::{ExpandedPrompt, ServerPrompt, WantedPrompt};

/// Event from the core to the front end.
#[derive(Clone, Debug, PartialEq)]
pub struct UiEvent {
    /// The session that the event is about.
    pub conversation_id: ConversationId,
    /// The agent that the event is about.
    pub agent: AgentId,
    /// Kind and data of the event.
    pub kind: UiEventKind,
}

/// Kind of an event for a front end.
#[derive(Clone, Debug, PartialEq)]
pub enum UiEventKind {
    /// An event was logged.
    Logged(Box<SessionEvent>),
    /// The model's reply continues. Void if a `model_failed` event follows before the `assistant_message`.
    TextDelta {
        /// The next part of the reply's text.
        text: String,
    },
    /// The model's visible thinking continues.
    ThinkingDelta {
        /// The next part of the visible thinking.
        text: String,
    },
    /// A command printed something (untrusted, not sanitised).
    OutputDelta {
        /// The call whose output this is.
        call: CallId,
        /// The next part of the output, made valid UTF-8.
        text: String,
    },
    /// A request for an approval. One [`UserActionKind::Answer`] has to follow.
    ApprovalRequested {
        /// Id of the request, which the answer repeats.
        id: ApprovalId,
        /// The request, with all that a person needs to decide.
        request: Box<ServerRequest>,
    },
    /// A request for an approval needs no answer any more, whoever decided.
    ApprovalClosed {
        /// The id of the request.
        id: ApprovalId,
    },
    /// The names of the project's files, requested by [`UserActionKind::ListFiles`] (untrusted, not sanitised).
    FileNames {
        /// The names, relative to the project.
        names: Vec<WirePath>,
        /// True if the project has more files than `names`.
        cut: bool,
        /// The reason why the names could not be listed; absent if they could.
        failed: Option<String>,
    },
    /// The branch of the project, requested by [`UserActionKind::FindBranch`] (untrusted, not sanitised).
    Branch {
        /// Name of the branch or, without a branch, the beginning of the commit's id. `None` if neither can be read.
        name: Option<String>,
    },
    /// The prompts of the session's MCP servers, once, at the beginning.
    ServerPrompts {
        /// The prompts, grouped by server, in each server's order.
        prompts: Vec<ServerPrompt>,
    },
    /// The text of a prompt, requested by [`UserActionKind::ExpandPrompt`].
    PromptExpanded(Box<ExpandedPrompt>),
    /// The consequences of a requested rewind. [`UserActionKind::Rewind`] with the preview's digest carries it out.
    RewindPreview(Box<RewindPreview>),
    /// The log cannot be written because the disk is full: no request is sent, and no call starts. Bailiwick retries
    /// from time to time and on [`UserActionKind::RetryLog`], whose failure repeats this event.
    LogPaused {
        /// File of the session log.
        path: WirePath,
        /// Number of free bytes, if it is known.
        free: Option<u64>,
        /// Id of the last logged event: all events up to it are safe.
        last: EventId,
    },
    /// The log is written again, and the session continues.
    LogGoesOn,
    /// A session continues. The event has the cost of its agents in earlier runs, including parts that were rewound.
    SpentBefore {
        /// Tokens and cost of each agent, without its sub-agents.
        accounts: Vec<(AgentId, Account)>,
    },
}

/// Action from the front end to the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserAction {
    /// The session that the action is for.
    pub conversation_id: ConversationId,
    /// The agent that the action is for; absent for the session's first agent.
    pub agent: Option<AgentId>,
    /// Kind and data of the action.
    pub kind: UserActionKind,
}

/// A request of the person, to the session or to one of its agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserActionKind {
    /// An action on one agent, which becomes one input of the agent's core.
    Agent(AgentAction),
    /// Answers a request for an approval.
    Answer {
        /// The id of the request.
        id: ApprovalId,
        /// The decision, with the text or values that the person entered.
        answer: ApprovalAnswer,
    },
    /// Starts an agent that makes a plan, in parallel to the session's first agent, and changes nothing.
    Plan {
        /// The purpose of the plan.
        text: String,
    },
    /// Changes the model within the provider, while no turn runs. Answered by the event `model_changed` or a notice.
    SetModel {
        /// The model's name.
        model: String,
    },
    /// Requests the project's files from the agent's worker. Answered by [`UiEventKind::FileNames`].
    ListFiles,
    /// Requests the project's branch from the worker. Answered by [`UiEventKind::Branch`] unless the worker ends.
    FindBranch,
    /// Requests the text of a prompt of an MCP server. Answered by [`UiEventKind::PromptExpanded`].
    ExpandPrompt(WantedPrompt),
    /// Restores files, the conversation or both as of a message, while no turn runs. Without the digest of a current
    /// preview, the answer is a preview, else the event `rewound` or a notice.
    Rewind {
        /// The message to return to, or the rewind to undo.
        target: RewindTarget,
        /// The selected files, relative to the project; empty for all.
        files: Vec<WirePath>,
        /// The digest of the preview that the user confirmed, if there was one.
        digest: Option<String>,
    },
    /// Tries again to write the log, if the session is paused because writing failed.
    RetryLog,
}

/// An action that came too late for its session or agent, and about which the user must be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread<'a> {
    /// An answer to an approval request.
    Answer(ApprovalId, &'a ApprovalAnswer),
    /// A message to an agent.
    Message,
}

impl UserActionKind {
    /// Returns the part of the action about which the user must be told if it comes too late; `None` if there is none.
    pub const fn unread(&self) -> Option<Unread<'_>> {
        match self {
            Self::Answer { id, answer } => Some(Unread::Answer(*id, answer)),
            Self::Agent(AgentAction::Prompt { .. } | AgentAction::PromptReading { .. }) => {
                Some(Unread::Message)
            }
            Self::Agent(
                AgentAction::SetRights { .. }
                | AgentAction::EditPlan { .. }
                | AgentAction::RevisePlan { .. }
                | AgentAction::ExecutePlan { .. }
                | AgentAction::AskTogether { .. }
                | AgentAction::SetMode { .. }
                | AgentAction::RevokeGrant { .. }
                | AgentAction::Compact
                | AgentAction::Clear
                | AgentAction::RunCommand { .. }
                | AgentAction::Interrupt
                | AgentAction::Quit
                | AgentAction::InterruptSession
                | AgentAction::Terminate
                | AgentAction::HangUp,
            )
            | Self::Plan { .. }
            | Self::SetModel { .. }
            | Self::ListFiles
            | Self::FindBranch
            | Self::ExpandPrompt(_)
            | Self::Rewind { .. }
            | Self::RetryLog => None,
        }
    }
}

/// Action of the user on an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentAction {
    /// Sends a message to the agent.
    Prompt {
        /// The user's message, without the pictures.
        text: String,
        /// The pictures before the text.
        images: Vec<Image>,
    },
    /// Sends a message while no turn runs, for a turn that only reads: nothing but the private temp directory is
    /// writable, and nothing is approved until its end. While a turn runs, the answer is a notice.
    PromptReading {
        /// The user's message, without the pictures.
        text: String,
        /// The pictures before the text.
        images: Vec<Image>,
        /// True if the network is off in this turn.
        offline: bool,
    },
    /// Changes the agent's access. Answered by the event `rights_changed` or a notice.
    SetRights {
        /// The right that changes, and its new value.
        change: RightsChange,
    },
    /// Replaces the bytes of a plan that waits for its approval. A new request replaces the open one.
    EditPlan {
        /// Id of the request, as in the event `approval_requested`.
        id: ApprovalId,
        /// The text of the plan file.
        markdown: String,
    },
    /// Changes fields of a plan that waits for its approval, and no other text. A new request replaces the open one.
    RevisePlan {
        /// Id of the request, as in the event `approval_requested`.
        id: ApprovalId,
        /// The plan with its new fields.
        plan: Box<Plan>,
    },
    /// Executes a plan from before the session. A planner revises the plan if a step fails and the plan allows it.
    ExecutePlan {
        /// The text of the plan file.
        markdown: String,
    },
    /// Shows a reply's other changes together with the one that waits for approval. One request replaces the open one.
    AskTogether {
        /// Id of the request, as in the event `approval_requested`.
        id: ApprovalId,
    },
    /// Changes the approval mode, and with it the standing access.
    SetMode {
        /// The new approval mode.
        mode: ApprovalMode,
    },
    /// Revokes an approval for the session.
    RevokeGrant {
        /// Id of the approval, as in the event `grant_added`.
        id: GrantId,
    },
    /// Summarises the conversation and continues with the summary: at once or, in a turn, before the next request.
    Compact,
    /// Starts an empty conversation in the session, while no turn runs. Answered by `context_compacted` or a notice.
    Clear,
    /// Runs a command of the user in the sandbox, while no turn runs. Only this command may write the project. The
    /// model reads command and output with the next message.
    RunCommand {
        /// The text for `bash -c`.
        command: String,
    },
    /// Ends the turn that runs.
    Interrupt,
    /// Ends the session.
    Quit,
    /// Ends the session because the process is interrupted.
    InterruptSession,
    /// Ends the session because the process received a signal.
    Terminate,
    /// Ends the session because its terminal was closed.
    HangUp,
}

impl From<AgentAction> for UserActionKind {
    fn from(action: AgentAction) -> Self {
        Self::Agent(action)
    }
}

/// An input from the user to an agent's core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// An action of the user; a path in it has been resolved.
    Act(AgentAction),
    /// Answers a request for an approval.
    Answer {
        /// The id of the request.
        id: ApprovalId,
        /// The kind of request that the answer is for.
        kind: AskKind,
        /// The decision: approved, once or for longer, or denied.
        decision: ReviewDecision,
        /// The digest in the answer; if present, it must equal the digest in the request.
        digest: Option<String>,
    },
}
