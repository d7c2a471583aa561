//! Arguments of `mcp` and its commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ipc::rights::Network;
use protocol::network_words::network;

use super::TierArg;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List your servers, their access and tools, and the project's proposals
    List(McpListArgs),
    /// Install a server, show its access and tools, and ask for your approval
    Add(McpAddArgs),
    /// Start a server in its sandbox and print its version, tools and timing
    Test(McpTestArgs),
    /// Reinstall a server's packages, show the difference, and ask for your approval
    Update(McpUpdateArgs),
    /// Remove a server from your settings, with its approval and files
    Remove(McpRemoveArgs),
}

/// Arguments of `mcp list`.
#[derive(Debug, Args)]
pub(crate) struct McpListArgs {
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
}

/// Arguments of `mcp add`.
#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// Name of the server; the names of its tools begin with it
    pub name: String,
    /// Let the server read a path, relative to the project or absolute
    #[arg(long, value_name = "PATH")]
    pub read: Vec<String>,
    /// Let the server write a path outside the project
    #[arg(long, value_name = "PATH")]
    pub write: Vec<String>,
    /// Let the server reach hosts by name [default: off]
    #[arg(long, value_parser = network, value_name = "off|HOST,…")]
    pub net: Option<Network>,
    /// Pass an environment variable of yours to the server
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Offer agents only this tool; may be repeated
    #[arg(long, value_name = "TOOL")]
    pub offer: Vec<String>,
    /// Add the server that the project proposes under this name
    #[arg(long, conflicts_with = "command")]
    pub from_project: bool,
    /// Approve without asking
    #[arg(long)]
    pub yes: bool,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// Program and arguments [default: those in your settings]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// Arguments of `mcp test`.
#[derive(Debug, Args)]
pub(crate) struct McpTestArgs {
    /// Name of the server
    pub name: String,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Arguments of `mcp update`.
#[derive(Debug, Args)]
pub(crate) struct McpUpdateArgs {
    /// Name of the server
    pub name: String,
    /// Version of its package [default: as its command says, or the newest]
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Approve without asking
    #[arg(long)]
    pub yes: bool,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Arguments of `mcp remove`.
#[derive(Debug, Args)]
pub(crate) struct McpRemoveArgs {
    /// Name of the server
    pub name: String,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
}
