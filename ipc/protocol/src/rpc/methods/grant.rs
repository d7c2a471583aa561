//! Access that a person grants without a request, or withdraws.

use serde::{Deserialize, Serialize};

use ipc::id::{AgentId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Hosts, Network, Reach, RightsChange};

/// Parameters of [`GRANT_METHOD`](super::GRANT_METHOD) and [`WITHDRAW_METHOD`](super::WITHDRAW_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct GrantParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The agent whose access changes; the conversation's first agent if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The right to add to those of the agent, or to withdraw.
    pub right: GrantedRight,
}

/// Access that a person gives without a request. In JSON `{"write": PATH}`, `{"network": {}}` or `{"socket": PATH}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum GrantedRight {
    /// A file or directory that may be written, absolute or relative to the project.
    Write(WirePath),
    /// Use of the whole network, or of some hosts.
    Network(GrantedNetwork),
    /// A unix socket of another program that may be reached, absolute or relative to the project.
    Socket(WirePath),
}

/// Network access that a person grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct GrantedNetwork {
    /// Hosts that the agent may reach from now on, in addition to earlier ones; absent for all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Local addresses that may be connected to; if absent, those of the conversation's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
}

impl GrantedRight {
    /// Returns the change of access that withdraws the right.
    pub fn withdrawn(self) -> RightsChange {
        match self {
            Self::Write(path) => RightsChange::RemoveWrite { path },
            Self::Socket(path) => RightsChange::RemoveSocket { path },
            Self::Network(_) => RightsChange::Network { net: Network::Off, reach: None },
        }
    }
}

impl From<GrantedRight> for RightsChange {
    fn from(right: GrantedRight) -> Self {
        match right {
            GrantedRight::Write(path) => Self::AddWrite { path },
            GrantedRight::Socket(path) => Self::AddSocket { path },
            GrantedRight::Network(GrantedNetwork { hosts: Some(hosts), reach }) => {
                Self::AddHosts { hosts, reach }
            }
            GrantedRight::Network(GrantedNetwork { hosts: None, reach }) => {
                Self::Network { net: Network::On, reach }
            }
        }
    }
}
