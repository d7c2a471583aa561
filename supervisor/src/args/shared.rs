//! What several commands are told in the same words.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{ModeArg, NetArg, ProviderArg, ReachArg, TierArg};

/// What is confined, and how.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConfinementArgs {
    /// The network: off, or outbound [default: off]
    #[arg(long, value_enum)]
    pub net: Option<NetArg>,
    /// With the network on, also allows: host, lan, link-local, or metadata
    #[arg(long, value_enum, value_name = "PLACE")]
    pub reach: Vec<ReachArg>,
    /// Makes another file or directory writable
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Hides a path's content beside the default ones
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Passes a variable to commands, or sets it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
    /// What the kernel is to hold it by: the best that it can, or one tier and no other
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// An agent that could be started.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// What becomes of what is beyond the rights [default: what the settings say, or ask]
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
    /// Who the model is asked of, and how: `openai` is chat completions, at whatever server speaks them [default: what the
    /// settings say, or who the model is known to be asked of, or anthropic]
    #[arg(long, value_enum, value_name = "PROVIDER")]
    pub provider: Option<ProviderArg>,
    /// The address of the provider's API, or of a server that speaks it; a path prefix is kept
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
}
