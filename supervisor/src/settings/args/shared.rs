//! Flags that several commands share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use ipc::rights::Network;
use protocol::network_words::network;

use super::{BaselineArg, ModeArg, ProviderArg, ReachArg, TierArg};

pub(crate) const NETWORK: &str = "off|on|HOST,…";

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConfinementArgs {
    /// Network access: off, on, or hosts by name [default: off]
    #[arg(long, value_parser = network, value_name = NETWORK)]
    pub net: Option<Network>,
    /// With the network on, also allow this kind of address
    #[arg(long, value_enum, value_name = "PLACE")]
    pub reach: Vec<ReachArg>,
    /// Make another file or directory writable
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Let commands reach a unix socket of another program
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// Hide the content of this path, in addition to the defaults
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Pass an environment variable to commands, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Start even if a sandbox layer is unavailable
    #[arg(long)]
    pub allow_degraded: bool,
    /// Remove the caches of package managers and builds at the end
    #[arg(long)]
    pub forget_caches: bool,
    /// Keep or restore executed files that a killed session changed
    #[arg(long, value_enum, value_name = "WORD")]
    pub baseline: Option<BaselineArg>,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Flags for MCP servers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// Let the agents use this MCP server of your settings
    #[arg(long, value_name = "NAME")]
    pub mcp: Vec<String>,
    /// Offer the MCP servers of this file, with the access it states
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Approval mode: ask, allow or deny [default: from settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Sandbox options.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ModelArgs {
    /// Model [default: from settings, or claude-opus-5-5]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Provider API [default: from settings, or the model's provider]
    #[arg(long, value_enum, value_name = "PROVIDER")]
    pub provider: Option<ProviderArg>,
    /// Address of the provider API, or of a relay's socket (`unix:PATH`)
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
}
