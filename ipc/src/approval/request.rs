//! What a front end is asked.

use serde::de::{Deserializer, Error as _};
use serde::ser::{Error as _, SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::FileChanges;
#[cfg(feature = "schema")]
use super::{
    ApplyPatchApprovalResponse, ExecCommandApprovalResponse, ExternalToolApprovalResponse,
    NetworkApprovalResponse,
};
use crate::event::Recorded;
use crate::id::{AgentId, CallId, ConversationId};
use crate::path::WirePath;
use crate::rights::{Grant, Network, RightsSummary};
use crate::tool::Access;

/// The method that asks for a change of files.
pub const APPLY_PATCH_APPROVAL_METHOD: &str = "applyPatchApproval";

/// The method that asks for a command.
pub const EXEC_COMMAND_APPROVAL_METHOD: &str = "execCommandApproval";

/// The method that asks for the network.
pub const NETWORK_APPROVAL_METHOD: &str = "networkApproval";

/// The method that asks for a call of an external tool.
pub const EXTERNAL_TOOL_APPROVAL_METHOD: &str = "externalToolApproval";

/// Asks for exactly this change of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplyPatchApprovalParams {
    /// The session.
    pub conversation_id: ConversationId,
    /// Who asks.
    pub agent: AgentId,
    /// The call that it is for.
    pub call_id: CallId,
    /// What becomes of each file.
    pub file_changes: FileChanges,
    /// SHA-256 of the effect with all its bytes, in hexadecimal: what is approved is what is written.
    pub digest: String,
    /// What the call is given beyond the standing rights.
    pub grant: Grant,
    /// The standing rights.
    pub rights: Recorded<RightsSummary>,
    /// How long an answer counts, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// Why, in the agent's own words: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A write root that would cover this and more: a separate choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_root: Option<WirePath>,
}

/// Asks for exactly this command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecCommandApprovalParams {
    /// The session.
    pub conversation_id: ConversationId,
    /// Who asks.
    pub agent: AgentId,
    /// The call that it is for.
    pub call_id: CallId,
    /// The argument vector that will be executed.
    pub command: Vec<String>,
    /// Where, absolute.
    pub cwd: WirePath,
    /// Variables that are set beyond those that every command has.
    pub environment: Vec<(String, WirePath)>,
    /// The rights that the command declares to need.
    pub access: Access,
    /// The network that it declares to need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// SHA-256 of the effect, in hexadecimal.
    pub digest: String,
    /// What the command is given beyond the standing rights.
    pub grant: Grant,
    /// The standing rights.
    pub rights: Recorded<RightsSummary>,
    /// How long an answer counts, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// Why, in the agent's own words: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The longest command prefix that could be approved for the session; absent where none could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Vec<String>>,
    /// A write root that would cover this and more: a separate choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_root: Option<WirePath>,
}

/// Asks for the network, which is all that this command lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkApprovalParams {
    /// The session.
    pub conversation_id: ConversationId,
    /// Who asks.
    pub agent: AgentId,
    /// The call that it is for.
    pub call_id: CallId,
    /// The argument vector that will be executed.
    pub command: Vec<String>,
    /// Where, absolute.
    pub cwd: WirePath,
    /// Variables that are set beyond those that every command has.
    pub environment: Vec<(String, WirePath)>,
    /// The rights that the command declares to need.
    pub access: Access,
    /// SHA-256 of the effect, in hexadecimal.
    pub digest: String,
    /// What the command is given beyond the standing rights.
    pub grant: Grant,
    /// The standing rights.
    pub rights: Recorded<RightsSummary>,
    /// How long an answer counts, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// Why, in the agent's own words: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The longest command prefix that could be approved for the session; absent where none could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Vec<String>>,
}

/// Asks for exactly this call of a tool that a server outside the sandbox serves: the agent's rights do not bind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExternalToolApprovalParams {
    /// The session.
    pub conversation_id: ConversationId,
    /// Who asks.
    pub agent: AgentId,
    /// The call that it is for.
    pub call_id: CallId,
    /// The server that serves the tool.
    pub server: String,
    /// The tool, by the server's own name for it.
    pub tool: String,
    /// The arguments exactly as they are sent: the text of a JSON object.
    pub json: String,
    /// SHA-256 of server, tool and arguments, in hexadecimal.
    pub digest: String,
    /// How long an answer counts, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// Why, in the agent's own words: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The methods of all requests of the core.
pub const SERVER_METHODS: &[&str] = &[
    APPLY_PATCH_APPROVAL_METHOD,
    EXEC_COMMAND_APPROVAL_METHOD,
    NETWORK_APPROVAL_METHOD,
    EXTERNAL_TOOL_APPROVAL_METHOD,
];

/// A request of the core to its front end. In JSON `{"method": …, "params": …}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerRequest {
    /// A change of files.
    ApplyPatchApproval(ApplyPatchApprovalParams),
    /// A command.
    ExecCommandApproval(ExecCommandApprovalParams),
    /// The network.
    NetworkApproval(NetworkApprovalParams),
    /// A call of an external tool.
    ExternalToolApproval(ExternalToolApprovalParams),
}

/// A method that no request has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no request has the method {0:?}")]
pub struct UnknownServerRequest(pub String);

impl ServerRequest {
    /// The method of its JSON-RPC form.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::ApplyPatchApproval(_) => APPLY_PATCH_APPROVAL_METHOD,
            Self::ExecCommandApproval(_) => EXEC_COMMAND_APPROVAL_METHOD,
            Self::NetworkApproval(_) => NETWORK_APPROVAL_METHOD,
            Self::ExternalToolApproval(_) => EXTERNAL_TOOL_APPROVAL_METHOD,
        }
    }

    /// The session.
    pub const fn conversation_id(&self) -> &ConversationId {
        match self {
            Self::ApplyPatchApproval(params) => &params.conversation_id,
            Self::ExecCommandApproval(params) => &params.conversation_id,
            Self::NetworkApproval(params) => &params.conversation_id,
            Self::ExternalToolApproval(params) => &params.conversation_id,
        }
    }

    /// The call that it is for.
    pub const fn call_id(&self) -> CallId {
        match self {
            Self::ApplyPatchApproval(params) => params.call_id,
            Self::ExecCommandApproval(params) => params.call_id,
            Self::NetworkApproval(params) => params.call_id,
            Self::ExternalToolApproval(params) => params.call_id,
        }
    }

    /// The digest of the effect.
    pub fn digest(&self) -> &str {
        match self {
            Self::ApplyPatchApproval(params) => &params.digest,
            Self::ExecCommandApproval(params) => &params.digest,
            Self::NetworkApproval(params) => &params.digest,
            Self::ExternalToolApproval(params) => &params.digest,
        }
    }

    /// How long an answer counts, in milliseconds.
    pub const fn timeout_ms(&self) -> u64 {
        match self {
            Self::ApplyPatchApproval(params) => params.timeout_ms,
            Self::ExecCommandApproval(params) => params.timeout_ms,
            Self::NetworkApproval(params) => params.timeout_ms,
            Self::ExternalToolApproval(params) => params.timeout_ms,
        }
    }

    /// Each method with the schemas of its parameters and its response.
    #[cfg(feature = "schema")]
    pub(crate) fn schemas(
        generator: &mut schemars::SchemaGenerator,
    ) -> [(&'static str, schemars::Schema, schemars::Schema); 4] {
        [
            (
                APPLY_PATCH_APPROVAL_METHOD,
                generator.subschema_for::<ApplyPatchApprovalParams>(),
                generator.subschema_for::<ApplyPatchApprovalResponse>(),
            ),
            (
                EXEC_COMMAND_APPROVAL_METHOD,
                generator.subschema_for::<ExecCommandApprovalParams>(),
                generator.subschema_for::<ExecCommandApprovalResponse>(),
            ),
            (
                NETWORK_APPROVAL_METHOD,
                generator.subschema_for::<NetworkApprovalParams>(),
                generator.subschema_for::<NetworkApprovalResponse>(),
            ),
            (
                EXTERNAL_TOOL_APPROVAL_METHOD,
                generator.subschema_for::<ExternalToolApprovalParams>(),
                generator.subschema_for::<ExternalToolApprovalResponse>(),
            ),
        ]
    }

    /// The parameters as JSON.
    pub fn params(&self) -> serde_json::Result<Box<RawValue>> {
        match self {
            Self::ApplyPatchApproval(params) => serde_json::value::to_raw_value(params),
            Self::ExecCommandApproval(params) => serde_json::value::to_raw_value(params),
            Self::NetworkApproval(params) => serde_json::value::to_raw_value(params),
            Self::ExternalToolApproval(params) => serde_json::value::to_raw_value(params),
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

#[cfg(feature = "schema")]
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
        schemars::json_schema!({"description": "A request for an approval, as it was made.", "oneOf": forms})
    }
}

impl<'de> Deserialize<'de> for ServerRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Form {
            method: String,
            params: Box<RawValue>,
        }
        let Form { method, params } = Form::deserialize(deserializer)?;
        let params = params.get();
        let request = match method.as_str() {
            APPLY_PATCH_APPROVAL_METHOD => serde_json::from_str(params).map(Self::ApplyPatchApproval),
            EXEC_COMMAND_APPROVAL_METHOD => serde_json::from_str(params).map(Self::ExecCommandApproval),
            NETWORK_APPROVAL_METHOD => serde_json::from_str(params).map(Self::NetworkApproval),
            EXTERNAL_TOOL_APPROVAL_METHOD => serde_json::from_str(params).map(Self::ExternalToolApproval),
            _ => return Err(D::Error::custom(UnknownServerRequest(method))),
        };
        request.map_err(D::Error::custom)
    }
}
