//! What lists, adds, tests and removes servers of MCP.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ipc::rights::Network;
use protocol::network_words::network;

use super::TierArg;

/// What there is to do about servers of MCP.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Lists your servers with access and tools, and those that the project proposes
    List(McpListArgs),
    /// Installs, starts and shows a server in its sandbox, and asks whether agents may call it
    Add(McpAddArgs),
    /// Starts a server in its sandbox and prints its version, tools and time
    Test(McpTestArgs),
    /// Installs a server's packages anew, shows the difference and asks
    Update(McpUpdateArgs),
    /// Removes a server from your settings, with its approval and its own files
    Remove(McpRemoveArgs),
}

/// Arguments of `mcp list`.
#[derive(Debug, Args)]
pub(crate) struct McpListArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
}

/// Arguments of `mcp add`.
#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// Its name, with which the names of its tools begin
    pub name: String,
    /// Lets the server read a path, relative to the project or absolute
    #[arg(long, value_name = "PATH")]
    pub read: Vec<String>,
    /// Lets the server write a path outside the project
    #[arg(long, value_name = "PATH")]
    pub write: Vec<String>,
    /// Lets the server reach hosts by name [default: off]
    #[arg(long, value_parser = network, value_name = "off|HOST,…")]
    pub net: Option<Network>,
    /// Passes one of your variables to the server
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Offers agents this tool, and no others that are not named
    #[arg(long, value_name = "TOOL")]
    pub offer: Vec<String>,
    /// Takes the server that the project proposes under this name
    #[arg(long, conflicts_with = "command")]
    pub from_project: bool,
    /// Approves what is shown, without a question
    #[arg(long)]
    pub yes: bool,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Takes the best sandbox of this machine, or one tier alone
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// The program and its arguments [default: those in your settings]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// Arguments of `mcp test`.
#[derive(Debug, Args)]
pub(crate) struct McpTestArgs {
    /// The server
    pub name: String,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Takes the best sandbox of this machine, or one tier alone
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Arguments of `mcp update`.
#[derive(Debug, Args)]
pub(crate) struct McpUpdateArgs {
    /// The server
    pub name: String,
    /// Takes this version of its package [default: the one its command names, or the newest]
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Approves what is shown, without a question
    #[arg(long)]
    pub yes: bool,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Takes the best sandbox of this machine, or one tier alone
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Arguments of `mcp remove`.
#[derive(Debug, Args)]
pub(crate) struct McpRemoveArgs {
    /// The server
    pub name: String,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
}
