//! Arguments of `batch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use protocol::cost::Usd;

use super::values::{amount, seconds};
use super::{ActivityArg, ConfinementArgs, EngineArg, ModeArg, ModelArgs, ProfileArg};

/// Arguments of `batch`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BatchArgs {
    /// The tasks: a file of JSON objects, one a line; see docs/batch.md
    #[arg(value_name = "FILE", required = true)]
    pub file: Option<PathBuf>,
    /// The settings of their runs
    #[command(flatten)]
    pub runs: BatchRunsArgs,
    /// Another kind of tasks, or a report
    #[command(subcommand)]
    pub command: Option<BatchCommand>,
}

/// The commands of `batch`.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Runs instances of SWE-bench and writes the predictions that its harness reads
    #[command(after_help = BATCH_STATUS)]
    SweBench(Box<SweBenchArgs>),
    /// Shows the results of a batch: statuses, costs, and the causes of failures
    Report(BatchReportArgs),
    /// Puts the results of shards together into one directory
    #[command(after_help = MERGE_STATUS)]
    Merge(BatchMergeArgs),
}

/// The exit status of `batch`.
pub(crate) const BATCH_STATUS: &str = "\
Exit status: 0 every chosen task came to an end, whatever the end; 1 internal error; 2 usage; 3 tasks failed or were not begun;
129, 130 or 143 by a signal. The same command goes on with what is left.";

/// The exit status of `batch merge`.
pub(crate) const MERGE_STATUS: &str = "\
Exit status: 0 every task has a result; 1 internal error; 2 usage, or shards that do not belong together; 3 tasks have no result.";

/// Arguments of `batch swe-bench`.
#[derive(Debug, Args)]
pub(crate) struct SweBenchArgs {
    /// The instances: JSON lines, or one JSON array
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Without `--engine`: clones of the repositories, as OWNER/NAME or `OWNER__NAME`
    #[arg(long, value_name = "DIR")]
    pub repos: Option<PathBuf>,
    /// The prompt, with `{problem_statement}` and other members of a row in braces
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// The settings of their runs
    #[command(flatten)]
    pub runs: BatchRunsArgs,
}

/// Arguments of `batch report`.
#[derive(Debug, Args)]
pub(crate) struct BatchReportArgs {
    /// The output directory of the batch
    #[arg(value_name = "DIR")]
    pub results: PathBuf,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `batch merge`.
#[derive(Debug, Args)]
pub(crate) struct BatchMergeArgs {
    /// The output directories of the shards
    #[arg(value_name = "DIR", required = true)]
    pub shards: Vec<PathBuf>,
    /// The directory of all results, which is made
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// The file of tasks, to name those that no shard has
    #[arg(long, value_name = "FILE")]
    pub tasks: Option<PathBuf>,
}

/// The choice of tasks, and how they are run.
#[derive(Clone, Debug, Args)]
pub(crate) struct BatchRunsArgs {
    /// The directory of results, made if missing [default: FILE's name with `.batch`]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Number of tasks that run at a time
    #[arg(long, short = 'j', value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Runs only tasks whose id matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// Runs tasks A to B-1 of the filtered ones, from 0
    #[arg(long, value_name = "A:B")]
    pub slice: Option<String>,
    /// Runs each N-th task of the slice, from the I-th
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Prints a JSON object for each change of a task
    #[arg(long)]
    pub json: bool,
    /// Engine for tasks with an image
    #[arg(long, value_enum, default_value_t = EngineArg::None)]
    pub engine: EngineArg,
    /// The static programs for containers [default: beside this program]
    #[arg(long, value_name = "DIR")]
    pub programs: Option<PathBuf>,
    /// Keeps the checkouts of tasks that ended
    #[arg(long)]
    pub keep_checkouts: bool,
    /// Begins no further task after so many failures in a row
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_failures: u32,
    /// Begins no further task once all together cost this many US dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub budget: Option<Usd>,
    /// Name of the model in the predictions [default: bailiwick/MODEL]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Lets agents write the checkout (`auto`), or read alone (`deny`)
    #[arg(long, value_enum, default_value_t = ModeArg::Auto)]
    pub mode: ModeArg,
    /// The agent's purpose: `plan` makes a plan first
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// Gives the agent all tools, or a shell and a short prompt
    #[arg(long, value_enum, default_value_t = ProfileArg::Full)]
    pub profile: ProfileArg,
    /// Executes up to this many plans that need nothing beyond the flags
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub approve_plan: Option<u32>,
    /// The confinement
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Offers the agents the tools of this MCP server of yours
    #[arg(long, value_name = "NAME")]
    pub mcp: Vec<String>,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Ends a task after this many replies to all its agents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Ends a task with any agent's reply that reaches these tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Ends a task with any agent's reply that reaches these dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Ends a task after this many seconds, as in 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}
