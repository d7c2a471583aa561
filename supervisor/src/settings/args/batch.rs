//! Arguments of `batch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use protocol::cost::Usd;

use super::values::{amount, seconds};
use super::{ActivityArg, ConfinementArgs, EngineArg, ModeArg, ModelArgs, ProfileArg, ServerArgs};
use crate::settings::config::ToolName;

/// Arguments of `batch`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BatchArgs {
    /// File of tasks: one JSON object per line; see docs/batch.md
    #[arg(value_name = "FILE", required = true)]
    pub file: Option<PathBuf>,
    /// Options of the runs.
    #[command(flatten)]
    pub runs: BatchRunsArgs,
    /// Another kind of batch, or a report
    #[command(subcommand)]
    pub command: Option<BatchCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Run instances of SWE-bench and write predictions for its harness
    #[command(after_help = BATCH_STATUS)]
    SweBench(Box<SweBenchArgs>),
    /// Show the results of a batch: statuses, costs, causes of failures
    Report(BatchReportArgs),
    /// Merge the results of shards into one directory
    #[command(after_help = MERGE_STATUS)]
    Merge(BatchMergeArgs),
}

pub(crate) const BATCH_STATUS: &str = "\
Exit status: 0 every chosen task has ended, whatever its result; 1 internal error; 2 usage; 3 tasks failed or were not started;
129, 130 or 143 by a signal. The same command continues with the remaining tasks.";

pub(crate) const MERGE_STATUS: &str = "\
Exit status: 0 every task has a result; 1 internal error; 2 usage, or shards that do not belong together; 3 tasks have no result.";

/// Arguments of `batch swe-bench`.
#[derive(Debug, Args)]
pub(crate) struct SweBenchArgs {
    /// File of instances: JSON lines, or one JSON array
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Without `--engine`: directory of clones named OWNER/NAME or `OWNER__NAME`
    #[arg(long, value_name = "DIR")]
    pub repos: Option<PathBuf>,
    /// Prompt template: `{problem_statement}` and other fields of an instance are filled in
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// Options of the runs.
    #[command(flatten)]
    pub runs: BatchRunsArgs,
}

/// Arguments of `batch report`.
#[derive(Debug, Args)]
pub(crate) struct BatchReportArgs {
    /// Output directory of the batch
    #[arg(value_name = "DIR")]
    pub results: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `batch merge`.
#[derive(Debug, Args)]
pub(crate) struct BatchMergeArgs {
    /// Output directories of the shards
    #[arg(value_name = "DIR", required = true)]
    pub shards: Vec<PathBuf>,
    /// New directory for the merged results
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// File of tasks, to report those missing from all shards
    #[arg(long, value_name = "FILE")]
    pub tasks: Option<PathBuf>,
}

/// The choice of tasks, and how they are run.
#[derive(Clone, Debug, Args)]
pub(crate) struct BatchRunsArgs {
    /// Directory for results, created if missing [default: FILE's name with `.batch`]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Number of tasks to run at a time
    #[arg(long, short = 'j', value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Run only tasks whose id matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// Run tasks A to B-1 of the filtered tasks, counted from 0
    #[arg(long, value_name = "A:B")]
    pub slice: Option<String>,
    /// Run every N-th task of the slice, starting with the I-th
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Print a JSON object whenever the state of a task changes
    #[arg(long)]
    pub json: bool,
    /// Container engine for tasks with an image
    #[arg(long, value_enum, default_value_t = EngineArg::None)]
    pub engine: EngineArg,
    /// Directory of static programs for containers [default: directory of this program]
    #[arg(long, value_name = "DIR")]
    pub programs: Option<PathBuf>,
    /// Keep the checkouts of finished tasks
    #[arg(long)]
    pub keep_checkouts: bool,
    /// Stop after this many failures in a row
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_failures: u32,
    /// Stop at this total cost in US dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub budget: Option<Usd>,
    /// Name of the model in the predictions [default: bailiwick/MODEL]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Access to the checkout: write (`auto`), or read only (`deny`)
    #[arg(long, value_enum, default_value_t = ModeArg::Auto)]
    pub mode: ModeArg,
    /// Activity: execute the task, or make a plan first
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// Tools of the agent: all, or a shell with a short prompt
    #[arg(long, value_enum, default_value_t = ProfileArg::Full)]
    pub profile: ProfileArg,
    /// Approve up to this many plans that stay within the flags
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub approve_plan: Option<u32>,
    /// Sandbox options.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// MCP servers.
    #[command(flatten)]
    pub servers: ServerArgs,
    /// Let the first agent call this MCP tool without an approval
    #[arg(long, value_name = "SERVER/TOOL")]
    pub allow_tool: Vec<ToolName>,
    /// Model options.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Stop a task after this many model replies, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Stop a task at this many tokens, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Stop a task at this cost in US dollars, sub-agents included
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Stop a task after this many seconds, such as 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}
