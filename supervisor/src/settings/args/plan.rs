//! The arguments of `bailiwick plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use protocol::cost::Usd;

use super::values::{amount, seconds};
use super::{ConfinementArgs, ModelArgs, OutputFormat};
use crate::process::exit::EXIT_STATUS;

/// The commands of `bailiwick plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Lists the plans of the project, the newest last
    List(ListArgs),
    /// Prints a plan, and what its execution may do
    Show(ShowArgs),
    /// Edits a plan in $VISUAL or $EDITOR; an approval of the text before holds no longer
    Edit(OnePlan),
    /// Shows a plan with every command and right of its execution, and asks whether it may be executed
    Approve(ApproveArgs),
    /// Notes that a plan may not be executed
    Reject(OnePlan),
    /// Executes an approved plan, without a terminal
    #[command(after_help = EXIT_STATUS)]
    Execute(Box<PlanExecuteArgs>),
    /// Writes the text of a plan, byte for byte, to standard output or into a new file
    Export(ExportArgs),
}

/// One plan.
#[derive(Clone, Debug, Args)]
pub(crate) struct OnePlan {
    /// The plan's name or its beginning [default: the newest of the project]
    pub plan: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
}

/// Arguments of `plan list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Lists those of every project
    #[arg(long)]
    pub all: bool,
    /// Prints JSON, an object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `plan show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The plan
    #[command(flatten)]
    pub plan: OnePlan,
    /// Prints JSON, with the plan as data and its text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `plan approve`.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The plan
    #[command(flatten)]
    pub plan: OnePlan,
    /// Approves without a question, if the text has this SHA-256
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,
}

/// Arguments of `plan export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The plan
    #[command(flatten)]
    pub plan: OnePlan,
    /// Writes into this file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `plan execute`.
#[derive(Debug, Args)]
pub(crate) struct PlanExecuteArgs {
    /// The plan's name or its beginning [default: the newest of the project]
    pub plan: Option<String>,
    /// The project that the plan was made for
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Begins with the first step, whatever is finished
    #[arg(long)]
    pub all_steps: bool,
    /// Executes up to this many revisions that need nothing beyond the flags
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub approve_plan: Option<u32>,
    /// The rights and the sandbox
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Offers the agents the tools of this MCP server of yours
    #[arg(long, value_name = "NAME")]
    pub mcp: Vec<String>,
    /// Form of the output on standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
    /// Writes the change as a diff for `git apply`, on every status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Ends the run after this many replies to all its agents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Ends the run with any agent's reply that reaches these tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Ends the run with any agent's reply that reaches these dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Ends the run after this many seconds, as in 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}
