//! The access in a turn for which a person approves everything.

use ipc::path::WirePath;
use ipc::rights::{Network, RightsSummary};
use serde::{Deserialize, Serialize};

use crate::event::Recorded;

/// Access that `approved_for_turn` gives until the turn ends. The network is off meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct TurnAccess {
    /// Directories that become writable until the turn ends.
    pub write: Vec<WirePath>,
    /// All access of the turn's worker.
    pub rights: Recorded<RightsSummary>,
    /// Network access after the turn; `off` if it is off before the turn as well.
    pub network_after: Network,
    /// True if, by the settings, commands that do more than read still need an approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms_commands: bool,
}
