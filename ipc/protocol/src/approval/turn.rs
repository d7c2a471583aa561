//! The access of a turn in which a person says yes to everything.

use ipc::path::WirePath;
use ipc::rights::{Network, RightsSummary};
use serde::{Deserialize, Serialize};

use crate::event::Recorded;

/// Access until the end of the turn, which `approved_for_turn` gives. The network is off meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct TurnAccess {
    /// Directories that become writable.
    pub write: Vec<WirePath>,
    /// All access of the turn's worker.
    pub rights: Recorded<RightsSummary>,
    /// Network after the turn; `off` if it is off already.
    pub network_after: Network,
    /// True if commands that do not only read still need an approval, by the settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms_commands: bool,
}
