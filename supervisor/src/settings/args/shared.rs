//! What several commands are told in the same words.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use ipc::rights::Network;
use protocol::network_words::network;

use super::{BaselineArg, ModeArg, ProviderArg, ReachArg, TierArg};

/// Values of `--net`.
pub(crate) const NETWORK: &str = "off|on|HOST,…";

/// What is confined, and how.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConfinementArgs {
    /// The network: off, on, or hosts by name [default: off]
    #[arg(long, value_parser = network, value_name = NETWORK)]
    pub net: Option<Network>,
    /// With the network on, also allows: host, lan, link-local, or metadata
    #[arg(long, value_enum, value_name = "PLACE")]
    pub reach: Vec<ReachArg>,
    /// Makes another file or directory writable
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Lets commands reach a unix socket of another program
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// Hides a path's content beside the default ones
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Passes a variable to commands, or sets it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
    /// Removes at the end what package managers and builds cached
    #[arg(long)]
    pub forget_caches: bool,
    /// Keeps or restores what differs after a run that was killed
    #[arg(long, value_enum, value_name = "WORD")]
    pub baseline: Option<BaselineArg>,
    /// Takes the best sandbox of this machine, or one tier alone
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// An agent that could be started.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Asks before changes, makes or denies them [default: settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
}

/// The model, and who is asked.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model [default: what the settings say, or claude-opus-5-5]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Asks this API [default: the settings, or the model's own, or anthropic]
    #[arg(long, value_enum, value_name = "PROVIDER")]
    pub provider: Option<ProviderArg>,
    /// Asks the API at this address, or a relay's socket (`unix:PATH`)
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
}
