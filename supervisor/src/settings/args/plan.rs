//! The arguments of `bailiwick plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use protocol::cost::Usd;

use super::values::{amount, seconds};
use super::{ConfinementArgs, ModelArgs, OutputFormat, ServerArgs};
use crate::process::exit::EXIT_STATUS;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// List the project's plans, the newest last
    List(ListArgs),
    /// Print a plan and the access of its execution
    Show(ShowArgs),
    /// Edit a plan in $VISUAL or $EDITOR; a change ends its approval
    Edit(OnePlan),
    /// Show a plan with its commands and access, and ask for your approval
    Approve(ApproveArgs),
    /// Reject a plan
    Reject(OnePlan),
    /// Execute an approved plan, without a terminal UI
    #[command(after_help = EXIT_STATUS)]
    Execute(Box<PlanExecuteArgs>),
    /// Write the text of a plan to standard output or a new file
    Export(ExportArgs),
}

/// The plan that a command is for
#[derive(Clone, Debug, Args)]
pub(crate) struct OnePlan {
    /// Name of the plan, or its beginning [default: newest of the project]
    pub plan: Option<String>,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
}

/// Arguments of `plan list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Include every project
    #[arg(long)]
    pub all: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `plan show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the plan, or its beginning
    #[command(flatten)]
    pub plan: OnePlan,
    /// Print JSON with the plan as data and as text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `plan approve`.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Name of the plan, or its beginning
    #[command(flatten)]
    pub plan: OnePlan,
    /// Approve without asking if the text has this SHA-256
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,
}

/// Arguments of `plan export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Name of the plan, or its beginning
    #[command(flatten)]
    pub plan: OnePlan,
    /// New file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `plan execute`.
#[derive(Debug, Args)]
pub(crate) struct PlanExecuteArgs {
    /// Name of the plan, or its beginning [default: newest of the project]
    pub plan: Option<String>,
    /// Directory of the plan's project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Start with the first step, even if steps are finished
    #[arg(long)]
    pub all_steps: bool,
    /// Approve up to this many revised plans that stay within the flags
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub approve_plan: Option<u32>,
    /// Sandbox options.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// MCP servers.
    #[command(flatten)]
    pub servers: ServerArgs,
    /// Format of standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
    /// Write changes as a diff for `git apply`, whatever the status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Model options.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Stop after this many model replies, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Stop at this many tokens, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Stop at this cost in US dollars, sub-agents included
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Stop after this many seconds, such as 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}
