//! Requests of a front end.

use ipc::confinement::TierChoice;
use ipc::id::{AgentId, ApprovalId, ConversationId, EventId, GrantId};
use ipc::path::WirePath;
use ipc::rights::{Network, Reach};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::response::decode;
use super::{
    Attachment, ErrorObject, ErrorWord, GetCommandParams, GetPromptParams, GrantParams, NotificationForm,
    RewindParams, SendToAgentParams, StopAgentParams,
};
use crate::approval::ApprovalMode;
use crate::cost::Usd;
use crate::event::Activity;

macro_rules! requests {
    ($($(#[$doc:meta])* $variant:ident($params:ty) -> $result:ty, $constant:ident = $method:literal;)*) => {
        $(
            #[doc = concat!("The method of [`ClientRequest::", stringify!($variant), "`].")]
            pub const $constant: &str = $method;
        )*

        /// The methods of all requests of a front end.
        pub const CLIENT_METHODS: &[&str] = &[$($constant),*];

        /// A request of a front end.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(clippy::large_enum_variant, reason = "one request is read at a time")]
        pub enum ClientRequest {
            $($(#[$doc])* $variant($params),)*
        }

        impl ClientRequest {
            /// Parses a request. Missing parameters count as an empty object.
            pub fn read(method: &str, params: Option<&RawValue>) -> Result<Self, ErrorObject> {
                let params = object(params)?;
                let request = match method {
                    $($constant => decode(params).map(Self::$variant),)*
                    _ => return Err(unknown(method)),
                };
                request.map_err(|cause| ErrorWord::InvalidParams.because(cause))
            }
        }

        pub(super) fn schemas(
            generator: &mut schemars::SchemaGenerator,
        ) -> Vec<(&'static str, schemars::Schema, schemars::Schema)> {
            vec![$((
                $constant,
                generator.subschema_for::<$params>(),
                generator.subschema_for::<$result>(),
            )),*]
        }
    };
}

requests! {
    /// Greets the server; must be the first request, and comes once.
    Initialize(InitializeParams) -> InitializeResponse, INITIALIZE_METHOD = "initialize";
    /// Opens a conversation with a separate agent.
    NewConversation(NewConversationParams) -> NewConversationResponse, NEW_CONVERSATION_METHOD = "newConversation";
    /// Sends a message to the agent; while the agent is busy, the message waits.
    SendUserMessage(SendUserMessageParams) -> Accepted, SEND_USER_MESSAGE_METHOD = "sendUserMessage";
    /// Ends the running turn.
    Interrupt(ConversationParams) -> Accepted, INTERRUPT_METHOD = "interrupt";
    /// Turns the network on or off, with a new worker, also during a turn.
    SetNet(SetNetParams) -> Accepted, SET_NET_METHOD = "setNet";
    /// Changes the handling of calls that the standing access does not cover.
    SetMode(SetModeParams) -> Accepted, SET_MODE_METHOD = "setMode";
    /// Changes the model within the same provider, while no turn runs.
    SetModel(SetModelParams) -> Accepted, SET_MODEL_METHOD = "setModel";
    /// Gives the agent one more right for the rest of the conversation, with a new worker, also during a turn.
    Grant(GrantParams) -> Accepted, GRANT_METHOD = "grant";
    /// Withdraws a right from an agent, no matter how it was granted.
    Withdraw(GrantParams) -> Accepted, WITHDRAW_METHOD = "withdraw";
    /// Revokes an approval for the session.
    RevokeGrant(RevokeGrantParams) -> Accepted, REVOKE_GRANT_METHOD = "revokeGrant";
    /// Summarises the conversation and continues with the summary: at once or, in a turn, before the next request.
    Compact(ConversationParams) -> Accepted, COMPACT_METHOD = "compact";
    /// Reads the logged events of an open conversation again, in pages.
    History(HistoryParams) -> HistoryResponse, HISTORY_METHOD = "history";
    /// Lists the agents of a conversation, including ended ones.
    ListAgents(ConversationParams) -> super::ListAgentsResponse, LIST_AGENTS_METHOD = "listAgents";
    /// Sends a message to an agent, which reads it with its next request.
    SendToAgent(SendToAgentParams) -> Accepted, SEND_TO_AGENT_METHOD = "sendToAgent";
    /// Ends the turn of an agent, and every agent below it.
    StopAgent(StopAgentParams) -> Accepted, STOP_AGENT_METHOD = "stopAgent";
    /// Lists the prompts of the MCP servers of a conversation.
    ListPrompts(ConversationParams) -> super::ListPromptsResponse, LIST_PROMPTS_METHOD = "listPrompts";
    /// Asks an MCP server for the text of a prompt, which a notification brings. No model reads it.
    GetPrompt(GetPromptParams) -> Accepted, GET_PROMPT_METHOD = "getPrompt";
    /// Lists the commands that the user defines, and those of a trusted project.
    ListCommands(ConversationParams) -> super::ListCommandsResponse, LIST_COMMANDS_METHOD = "listCommands";
    /// Returns the text, with arguments, of a command that the user or the project defines. No model reads it.
    GetCommand(GetCommandParams) -> super::GetCommandResponse, GET_COMMAND_METHOD = "getCommand";
    /// Starts an agent that makes a plan, in parallel to the first agent, and changes nothing.
    StartPlan(StartPlanParams) -> Accepted, START_PLAN_METHOD = "startPlan";
    /// Replaces the text of a plan that waits for its approval.
    EditPlan(EditPlanParams) -> Accepted, EDIT_PLAN_METHOD = "editPlan";
    /// Shows the other changes of a reply together with one that waits for its approval.
    AskTogether(AskTogetherParams) -> Accepted, ASK_TOGETHER_METHOD = "askTogether";
    /// Restores files, the conversation or both as of a message of the user. Without a digest, only a preview is sent.
    Rewind(RewindParams) -> Accepted, REWIND_METHOD = "rewind";
    /// Ends a conversation.
    CloseConversation(ConversationParams) -> Accepted, CLOSE_CONVERSATION_METHOD = "closeConversation";
    /// Ends every conversation and the server; answered when all have ended.
    Shutdown(ShutdownParams) -> Accepted, SHUTDOWN_METHOD = "shutdown";
}

/// Parameters of [`INITIALIZE_METHOD`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct InitializeParams {
    /// Name and version of the front end, for diagnostics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// Form of the notifications; typed if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<NotificationForm>,
}

/// Name and version of a front end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ClientInfo {
    /// Name of the front end.
    pub name: String,
    /// Version of the front end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Result of [`INITIALIZE_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct InitializeResponse {
    /// The version of Bailiwick.
    pub version: String,
    /// The version of this protocol.
    pub protocol: u32,
    /// The version of the events, which each notification repeats.
    pub event_schema: u32,
    /// The server's capabilities.
    pub capabilities: Capabilities,
}

/// Capabilities of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct Capabilities {
    /// The methods of the requests that the server accepts.
    pub client_requests: Vec<String>,
    /// The methods of the requests that the server may send.
    pub server_requests: Vec<String>,
    /// The approval modes that this server knows.
    pub modes: Vec<ApprovalMode>,
    /// The form of notifications that was chosen.
    pub notifications: NotificationForm,
    /// Maximum number of bytes of one line.
    pub max_line_bytes: u64,
}

/// Handling of files that an earlier session, which ended during a command, may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum BaselineWord {
    /// The changes count as the person's own, and stay.
    Mine,
    /// The files are restored as they were before the command.
    Restore,
}

/// Parameters of [`NEW_CONVERSATION_METHOD`]. They contain no secrets: the server has its own key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct NewConversationParams {
    /// The project: an absolute path.
    pub cwd: WirePath,
    /// Handling of calls that the standing access does not cover; `ask` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ApprovalMode>,
    /// Kind of work of the agent, `execute` if absent. With `plan`, the agent makes a plan and changes nothing; another
    /// agent executes the plan after its approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Id of the session to continue, or the id's beginning. The session's events come first. Absent for a new session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// True if the session in `resume` stays unchanged, and a copy of it continues as a new one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// Network access; off if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<Network>,
    /// Local addresses that may be connected to if the network is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
    /// Name of the model, if not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// API of the provider: `anthropic`, `openai` or `responses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Address of the provider's server, if it is not the usual one of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Further files and directories that may be written, absolute or relative to the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<WirePath>,
    /// Unix sockets of other programs that may be reached, absolute or relative to the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<WirePath>,
    /// Further paths whose contents are hidden, absolute or relative to the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<WirePath>,
    /// Names of further variables that commands inherit from the server's own environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The sandbox tier; the best of this machine if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierChoice>,
    /// True if the conversation may start although a layer of the sandbox is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_degraded: Option<bool>,
    /// Handling of files that an earlier session, which ended during a command, may have changed. If absent, a
    /// conversation with such files is not opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineWord>,
    /// Time to wait for an answer to a request for an approval, in seconds; after it, the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout_s: Option<u64>,
    /// Ends a turn after this many replies of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Ends a turn when this many tokens are spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Ends a turn before the next request once it has cost this many US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<Usd>,
}

/// Result of [`NEW_CONVERSATION_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct NewConversationResponse {
    /// Id of the opened conversation.
    pub conversation_id: ConversationId,
}

/// Parameters of [`SEND_USER_MESSAGE_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct SendUserMessageParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The user's message, without pictures.
    pub text: String,
    /// The pictures before the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Attachment>,
    /// True for a turn that only reads, without approvals. While a turn runs, a notice says that nothing was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
}

/// Parameters of [`START_PLAN_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct StartPlanParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The purpose of the plan.
    pub text: String,
}

/// Parameters of [`EDIT_PLAN_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct EditPlanParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The agent that made the plan.
    pub agent: AgentId,
    /// Id of the open request to approve the plan.
    pub id: ApprovalId,
    /// The text of the plan file.
    pub markdown: String,
}

/// Parameters of [`ASK_TOGETHER_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct AskTogetherParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The agent whose changes are to be approved.
    pub agent: AgentId,
    /// Id of the open request to approve one of the changes.
    pub id: ApprovalId,
}

/// Parameters of requests about a conversation as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ConversationParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
}

/// Parameters of [`SET_NET_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct SetNetParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The new network access.
    pub net: Network,
    /// Local addresses that may be connected to if the network is on; if absent, those of the conversation's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
}

/// Parameters of [`SET_MODE_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct SetModeParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The new approval mode.
    pub mode: ApprovalMode,
}

/// Parameters of [`SET_MODEL_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct SetModelParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The agent whose model changes; the conversation's first agent if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The model's name.
    pub model: String,
}

/// Parameters of [`REVOKE_GRANT_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct RevokeGrantParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// Id of the approval, as in the event `grant_added`.
    pub grant_id: GrantId,
}

/// Parameters of [`HISTORY_METHOD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct HistoryParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The agent whose events are returned; if absent, those of all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Id of the event after which the page begins; if absent, the page begins with the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<EventId>,
    /// Maximum number of events of the page, at most 1000; 200 if absent. A page may have fewer and yet not be the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of [`HISTORY_METHOD`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct HistoryResponse {
    /// The events in the order of the log, each as the parameters of the generic notification.
    #[schemars(schema_with = "generic_events")]
    pub events: Vec<Box<RawValue>>,
    /// The value of `after` for the next page; absent if the log has no more events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<EventId>,
}

fn generic_events(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": {"$ref": "#/methods/generic_notification/sessionEvent/params"},
    })
}

/// Parameters of [`SHUTDOWN_METHOD`]: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ShutdownParams {}

/// Result of a request that was accepted; notifications report its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct Accepted {}

fn object(params: Option<&RawValue>) -> Result<&str, ErrorObject> {
    match params.map(RawValue::get) {
        None => Ok("{}"),
        Some(json) if json.starts_with('{') => Ok(json),
        Some(_) => {
            Err(ErrorWord::InvalidParams.because("parameters by position are not supported: send an object"))
        }
    }
}

fn unknown(method: &str) -> ErrorObject {
    ErrorWord::MethodNotFound.because(format!("there is no method {method:?}"))
}
