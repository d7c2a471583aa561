//! Requests to approve a command, the network that a command lacks, or another run of a command after a denial.

use ipc::denial::Denial;
use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, RightsSummary};
use ipc::tool::Access;
use serde::{Deserialize, Serialize};

use super::{ProjectPrefixes, TurnAccess};
use crate::event::Recorded;

/// Defines the parameters of one kind of request: the fields of [`AskedCommand`], and those of that kind alone.
///
/// A macro, because serde cannot both flatten a shared struct and reject unknown fields.
macro_rules! command_params {
    ($(#[$doc:meta])* $name:ident
        { $($(#[$network_meta:meta])* pub $network:ident: $network_type:ty,)* }
        { $($(#[$meta:meta])* pub $field:ident: $type:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[derive(schemars::JsonSchema)]
        pub struct $name {
            /// The session whose agent asks.
            pub conversation_id: ConversationId,
            /// The agent that asks.
            pub agent: AgentId,
            /// The tool call that needs the approval.
            pub call_id: CallId,
            /// The argument vector that will be executed.
            pub command: Vec<String>,
            /// The working directory, absolute.
            pub cwd: WirePath,
            /// Variables that are set beyond those that every command has.
            pub environment: Vec<(String, WirePath)>,
            /// The access that the command declares to need.
            pub access: Access,
            $($(#[$network_meta])* pub $network: $network_type,)*
            /// SHA-256 of the effect, in hexadecimal.
            pub digest: String,
            /// Access that the command gets in addition to the permanent one.
            pub grant: Grant,
            /// The access that the agent has without this approval.
            pub rights: Recorded<RightsSummary>,
            /// Time limit for the answer, in milliseconds after the request.
            pub timeout_ms: u64,
            /// The agent's reason in its own words (untrusted), if it gave one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reason: Option<String>,
            $($(#[$meta])* pub $field: $type,)*
        }

        impl $name {
            /// Returns the parameters of a request: the common fields, and those that only this kind of request has.
            pub fn new(asked: AskedCommand $(, $network: $network_type)* $(, $field: $type)*) -> Self {
                let AskedCommand { conversation_id, agent, call_id, command, cwd, environment, .. } = asked;
                let AskedCommand { access, digest, grant, rights, timeout_ms, reason, .. } = asked;
                Self {
                    conversation_id, agent, call_id, command, cwd, environment, access, digest, grant, rights,
                    timeout_ms, reason $(, $network)* $(, $field)*
                }
            }
        }
    };
}

/// Fields that all requests about a command have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedCommand {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool call that needs the approval.
    pub call_id: CallId,
    /// The argument vector that will be executed.
    pub command: Vec<String>,
    /// The working directory, absolute.
    pub cwd: WirePath,
    /// Variables that are set beyond those that every command has.
    pub environment: Vec<(String, WirePath)>,
    /// The access that the command declares to need.
    pub access: Access,
    /// SHA-256 of the effect, in hexadecimal.
    pub digest: String,
    /// Access that the command gets in addition to the permanent one.
    pub grant: Grant,
    /// The access that the agent has without this approval.
    pub rights: Recorded<RightsSummary>,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason in its own words (untrusted), if it gave one.
    pub reason: Option<String>,
}

command_params! {
    /// Asks to run exactly this command.
    ExecCommandApprovalParams {
        /// The network that the command declares to need, if it declares any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub network: Option<Network>,
    } {
        /// The longest command prefix that could be approved for the session; absent if none could.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub prefix: Option<Vec<String>>,
        /// Prefixes for the parts of a compound command, if no single prefix covers it; each can be approved alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub parts: Vec<Vec<String>>,
        /// Directory that the scope `grant_root` makes writable for the session; absent if that scope is not possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub grant_root: Option<WirePath>,
        /// Access that the answer `approved_for_turn` gives until the turn ends; absent if that answer is not possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub turn: Option<TurnAccess>,
        /// Prefixes that the scope `command_prefixes_in_project` keeps in the user's settings; absent if not possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub in_project: Option<ProjectPrefixes>,
    }
}

command_params! {
    /// Asks for the network, the only right that this command lacks.
    NetworkApprovalParams {} {
        /// The longest command prefix that could be approved for the session; absent if none could.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub prefix: Option<Vec<String>>,
        /// Prefixes for the parts of a compound command, if no single prefix covers it; each can be approved alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub parts: Vec<Vec<String>>,
    }
}

command_params! {
    /// Offers to repeat a command that was blocked, with exactly the missing access.
    ///
    /// An answer for the session can have the scope `grant_root` or `network` only.
    DeniedCommandApprovalParams {
        /// The network that the command declares to need, if it declares any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub network: Option<Network>,
    } {
        /// The denial of the command.
        pub denial: Denial,
        /// Directory that the scope `grant_root` makes writable for the session; absent if that scope is not possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub grant_root: Option<WirePath>,
        /// Access that the answer `approved_for_turn` gives until the turn ends; absent if that answer is not possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub turn: Option<TurnAccess>,
    }
}
