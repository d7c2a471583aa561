//! Requests to a front end for an approval.

use std::sync::Arc;

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, RightsSummary};
use serde::de::{Deserializer, Error as _};
use serde::ser::{Error as _, SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::kinds::{
    AGENT_RIGHTS_APPROVAL_METHOD, APPLY_PATCH_APPROVAL_METHOD, DENIED_COMMAND_APPROVAL_METHOD,
    EXEC_COMMAND_APPROVAL_METHOD, EXTERNAL_TOOL_APPROVAL_METHOD, FETCH_APPROVAL_METHOD, HOST_APPROVAL_METHOD,
    NETWORK_APPROVAL_METHOD, PLAN_APPROVAL_METHOD, SERVER_FORM_METHOD, approval_kinds,
};
use super::{
    AgentRightsApprovalParams, AgentRightsApprovalResponse, ApplyPatchApprovalResponse, ApprovalAnswer,
    AskKind, ChangedTexts, DeniedCommandApprovalParams, DeniedCommandApprovalResponse,
    ExecCommandApprovalParams, ExecCommandApprovalResponse, ExternalToolApprovalResponse,
    FetchApprovalParams, FetchApprovalResponse, FileChanges, HostApprovalParams, HostApprovalResponse,
    NetworkApprovalParams, NetworkApprovalResponse, PlanApprovalParams, PlanApprovalResponse,
    ProjectPrefixes, ReviewDecision, ServerAccess, ServerFormParams, ServerFormResponse, TurnAccess,
};
use crate::event::Recorded;
use crate::rpc::decode;

/// Asks for exactly this change of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ApplyPatchApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool call that needs the approval.
    pub call_id: CallId,
    /// The change of each file.
    pub file_changes: FileChanges,
    /// SHA-256 of the effect with all its bytes, in hexadecimal. Only the approved bytes are written.
    pub digest: String,
    /// Access that the call gets in addition to the permanent one.
    pub grant: Grant,
    /// The access that the agent has without this approval.
    pub rights: Recorded<RightsSummary>,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason in its own words (untrusted), if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Directory that the scope `grant_root` makes writable for the session; absent if that scope is not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_root: Option<WirePath>,
    /// Other calls whose changes the request includes. One answer decides on all of them; it cannot be for the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<CallId>,
    /// Number of further changes of the same reply that could be shown together with this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Access that the answer `approved_for_turn` gives until the turn ends; absent if that answer is not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnAccess>,
    /// True if `approved_in_part` is a possible answer: each file is text of limited size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_part: bool,
    /// Old and new texts of the files, if `in_part` is true. They are neither logged nor sent to another process.
    #[serde(skip)]
    pub texts: Arc<ChangedTexts>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Asks for exactly this call of a tool of an MCP server. The server's access is its own, not the agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ExternalToolApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool call that needs the approval.
    pub call_id: CallId,
    /// The server that serves the tool.
    pub server: String,
    /// The tool, by the server's own name for it.
    pub tool: String,
    /// The arguments exactly as they are sent: the text of a JSON object.
    pub json: String,
    /// Access of the server; absent if it is not confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<ServerAccess>,
    /// SHA-256 of the tool's definition as a person approved it, in hexadecimal; absent if nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// SHA-256 of server, tool, arguments, definition and access, in hexadecimal.
    pub digest: String,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason in its own words (untrusted), if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

macro_rules! requests {
    ($($kind:ident($what:literal): $request:ident($params:ident) -> $response:ident,
        $constant:ident = $method:literal;)*) => {
        /// A request of the core to its front end for an approval. In JSON `{"method": …, "params": …}`.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ServerRequest {
            $(#[doc = concat!("For ", $what, ".")] $request($params),)*
        }

        impl ServerRequest {
            /// Returns the kind of approval that the request is for.
            pub const fn kind(&self) -> AskKind {
                match self {
                    $(Self::$request(_) => AskKind::$kind,)*
                }
            }

            /// Returns the session whose agent asks.
            pub const fn conversation_id(&self) -> &ConversationId {
                match self {
                    $(Self::$request(params) => &params.conversation_id,)*
                }
            }

            /// Returns the agent that asks.
            pub const fn agent(&self) -> &AgentId {
                match self {
                    $(Self::$request(params) => &params.agent,)*
                }
            }

            /// Returns the tool call that needs the approval.
            pub const fn call_id(&self) -> CallId {
                match self {
                    $(Self::$request(params) => params.call_id,)*
                }
            }

            /// Returns the digest of the action to be approved.
            pub fn digest(&self) -> &str {
                match self {
                    $(Self::$request(params) => &params.digest,)*
                }
            }

            /// Returns the time limit for the answer, in milliseconds.
            pub const fn timeout_ms(&self) -> u64 {
                match self {
                    $(Self::$request(params) => params.timeout_ms,)*
                }
            }

            /// Returns the agent's reason in its own words (untrusted), if it gave one.
            pub const fn reason(&self) -> Option<&String> {
                match self {
                    $(Self::$request(params) => params.reason.as_ref(),)*
                }
            }

            /// Returns the parameters as JSON.
            pub fn params(&self) -> serde_json::Result<Box<RawValue>> {
                match self {
                    $(Self::$request(params) => serde_json::value::to_raw_value(params),)*
                }
            }

            fn read(method: &str, params: &str) -> serde_json::Result<Self> {
                match method {
                    $($constant => serde_json::from_str(params).map(Self::$request),)*
                    _ => Err(serde::de::Error::custom(format_args!("no request has the method {method:?}"))),
                }
            }

            /// Returns an answer with this decision, bound to the digest of the request.
            pub fn answer(&self, decision: ReviewDecision) -> ApprovalAnswer {
                let digest = Some(self.digest().to_owned());
                match self {
                    $(Self::$request(_) => ApprovalAnswer::$kind($response { decision, digest }),)*
                }
            }

            /// Parses the result of a response to this request. The error says why it is no answer.
            pub(crate) fn read_answer(&self, result: &str) -> Result<ApprovalAnswer, String> {
                match self {
                    $(Self::$request(_) => decode(result).map(ApprovalAnswer::$kind),)*
                }
            }

            pub(crate) fn schemas(
                generator: &mut schemars::SchemaGenerator,
            ) -> Vec<(&'static str, schemars::Schema, schemars::Schema)> {
                vec![$((
                    $constant,
                    generator.subschema_for::<$params>(),
                    generator.subschema_for::<$response>(),
                )),*]
            }
        }
    };
}

approval_kinds!(requests);

impl ServerRequest {
    /// Returns the JSON-RPC method of the request.
    pub const fn method(&self) -> &'static str {
        self.kind().method()
    }

    /// Returns the argument vector of the command, if the request is about one.
    pub fn command(&self) -> Option<&[String]> {
        match self {
            Self::ExecCommandApproval(params) => Some(&params.command),
            Self::DeniedCommandApproval(params) => Some(&params.command),
            Self::NetworkApproval(params) => Some(&params.command),
            Self::ApplyPatchApproval(_)
            | Self::HostApproval(_)
            | Self::ExternalToolApproval(_)
            | Self::ServerForm(_)
            | Self::FetchApproval(_)
            | Self::AgentRightsApproval(_)
            | Self::PlanApproval(_) => None,
        }
    }

    /// Returns the access that the answer `approved_for_turn` would give, if that answer is possible.
    pub const fn turn(&self) -> Option<&TurnAccess> {
        match self {
            Self::ApplyPatchApproval(params) => params.turn.as_ref(),
            Self::ExecCommandApproval(params) => params.turn.as_ref(),
            Self::DeniedCommandApproval(params) => params.turn.as_ref(),
            Self::AgentRightsApproval(params) => params.turn.as_ref(),
            Self::NetworkApproval(_)
            | Self::HostApproval(_)
            | Self::ExternalToolApproval(_)
            | Self::ServerForm(_)
            | Self::FetchApproval(_)
            | Self::PlanApproval(_) => None,
        }
    }

    /// Returns the change of files, if a part of it can be approved.
    pub fn in_part(&self) -> Option<&ApplyPatchApprovalParams> {
        match self {
            Self::ApplyPatchApproval(params) => Some(params).filter(|params| params.in_part),
            _ => None,
        }
    }

    /// Returns the prefixes that the user's settings could keep for the project, if that answer is possible.
    pub const fn in_project(&self) -> Option<&ProjectPrefixes> {
        match self {
            Self::ExecCommandApproval(params) => params.in_project.as_ref(),
            _ => None,
        }
    }

    /// Returns the requested access beyond the permanent one. `None` for tools and forms of MCP servers.
    pub const fn grant(&self) -> Option<&Grant> {
        match self {
            Self::ApplyPatchApproval(params) => Some(&params.grant),
            Self::ExecCommandApproval(params) => Some(&params.grant),
            Self::DeniedCommandApproval(params) => Some(&params.grant),
            Self::NetworkApproval(params) => Some(&params.grant),
            Self::HostApproval(params) => Some(&params.grant),
            Self::AgentRightsApproval(params) => Some(&params.grant),
            Self::PlanApproval(params) => Some(&params.grant),
            Self::FetchApproval(params) => Some(&params.grant),
            Self::ExternalToolApproval(_) | Self::ServerForm(_) => None,
        }
    }
}

impl Serialize for ServerRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut request = serializer.serialize_struct("ServerRequest", 2)?;
        request.serialize_field("method", self.method())?;
        request.serialize_field("params", &self.params().map_err(S::Error::custom)?)?;
        request.end()
    }
}

impl schemars::JsonSchema for ServerRequest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ServerRequest".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let forms: Vec<_> = Self::schemas(generator)
            .into_iter()
            .map(|(method, params, _)| {
                schemars::json_schema!({
                    "type": "object",
                    "properties": {"method": {"const": method}, "params": params},
                    "required": ["method", "params"],
                })
            })
            .collect();
        schemars::json_schema!({"description": "A request for an approval, as the agent made it.", "oneOf": forms})
    }
}

impl<'de> Deserialize<'de> for ServerRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RequestForm {
            method: String,
            params: Box<RawValue>,
        }
        let RequestForm { method, params } = RequestForm::deserialize(deserializer)?;
        Self::read(&method, params.get()).map_err(D::Error::custom)
    }
}
