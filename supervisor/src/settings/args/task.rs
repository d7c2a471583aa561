//! Arguments of the terminal UI, `resume`, `exec` and `replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use protocol::cost::Usd;

use super::values::{amount, seconds, task};
use super::{
    ActivityArg, ConfinementArgs, DeniedArg, ExecCommand, ModeArg, ModelArgs, OutputFormat, ProfileArg,
    ServerArgs, TierArg,
};
use crate::settings::config::ToolName;

/// Arguments of the terminal UI.
#[derive(Debug, Args)]
pub(crate) struct TuiArgs {
    /// First task
    #[arg(value_parser = task)]
    pub prompt: Option<String>,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Approval mode: ask, allow or deny [default: from settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Activity: execute the task, or make a plan for your approval
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// Sandbox options.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Model options.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Record the traffic with the model in a new directory
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Plain lines and questions, for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
    /// Continue the last session of the project
    #[arg(short = 'c', long = "continue")]
    pub goes_on: bool,
    /// The session to continue, from `resume`.
    #[arg(skip)]
    pub session: Option<String>,
    /// True if the session is continued in a copy, from `resume --fork`.
    #[arg(skip)]
    pub forks: bool,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Name of the session, or its beginning [default: choose from a list]
    pub session: Option<String>,
    /// Continue in a copy of the session
    #[arg(long)]
    pub fork: bool,
    /// Directory of the project [default: that of the session]
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Approval mode: ask, allow or deny [default: from settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Sandbox options.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Model options.
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `exec`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub(crate) struct ExecArgs {
    /// Task [default: standard input, as with `-`]
    pub prompt: Option<String>,
    /// Run this command of your own; PROMPT is its arguments
    #[arg(long, value_name = "NAME", conflicts_with = "record")]
    pub command: Option<String>,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Approval mode: ask, allow or deny
    #[arg(long, value_enum, default_value_t = ModeArg::Deny)]
    pub mode: ModeArg,
    /// Activity: execute the task, or make a plan and print its path
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// Tools of the agent: all, or a shell with a short prompt
    #[arg(long, value_enum, default_value_t = ProfileArg::Full, conflicts_with = "record")]
    pub profile: ProfileArg,
    /// Approve up to this many plans that stay within the flags
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub approve_plan: Option<u32>,
    /// Continue the session of this name, or its beginning
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["record", "goes_on"])]
    pub resume: Option<String>,
    /// Continue the last session of the project
    #[arg(short = 'c', long = "continue", conflicts_with = "record")]
    pub goes_on: bool,
    /// Continue in a copy of the session
    #[arg(long)]
    pub fork: bool,
    /// Sandbox options.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Format of standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
    /// Add partial replies of the model to `--output stream-json`
    #[arg(long)]
    pub deltas: bool,
    /// Exit status of a turn that ends after a blocked call
    #[arg(long, value_enum, default_value_t = DeniedArg::Fail)]
    pub denied: DeniedArg,
    /// Require a JSON answer that fits this JSON Schema
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub schema: Option<PathBuf>,
    /// Write changes as a diff for `git apply`, whatever the status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Model options.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Attach this picture to the task
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// MCP servers.
    #[command(flatten)]
    pub servers: ServerArgs,
    /// Let the first agent call this MCP tool without an approval
    #[arg(long, value_name = "SERVER/TOOL")]
    pub allow_tool: Vec<ToolName>,
    /// Stop after this many model replies, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Stop at this many tokens, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Stop at this cost in US dollars, sub-agents included
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Unix socket at which another program can answer approvals
    #[arg(long, value_name = "PATH")]
    pub approval_socket: Option<PathBuf>,
    /// Stop after this many seconds, such as 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Record the traffic with the model in a new directory
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Keep no copies of files for `bailiwick rewind`
    #[arg(long)]
    pub no_rewind: bool,
    /// Process id of the batch that started this run; the run ends with that process, and its caches end with the run
    #[arg(long, value_name = "PID", hide = true)]
    pub batch: Option<i32>,
    /// A task of its own kind
    #[command(subcommand)]
    pub inner: Option<ExecCommand>,
}

impl ExecArgs {
    /// Returns the arguments of a command line without flags, for other commands that run as `exec` does.
    pub(crate) fn without_flags(directory: PathBuf, confinement: ConfinementArgs, model: ModelArgs) -> Self {
        Self {
            prompt: None,
            command: None,
            directory,
            mode: ModeArg::Deny,
            activity: ActivityArg::Execute,
            profile: ProfileArg::Full,
            approve_plan: None,
            resume: None,
            goes_on: false,
            fork: false,
            confinement,
            output: OutputFormat::Text,
            deltas: false,
            denied: DeniedArg::Fail,
            schema: None,
            patch: None,
            model,
            image: Vec::new(),
            servers: ServerArgs::default(),
            allow_tool: Vec::new(),
            max_steps: None,
            max_tokens: None,
            max_usd: None,
            approval_socket: None,
            timeout: None,
            record: None,
            no_rewind: false,
            batch: None,
            inner: None,
        }
    }
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Directory of the recording
    #[arg(value_name = "DIR")]
    pub recording: PathBuf,
    /// Directory of the project, in the state of the recording
    #[arg(short = 'C', value_name = "PROJECT", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Format of standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
    /// Write changes as a diff for `git apply`, whatever the status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Replay each part of a response with its recorded timing
    #[arg(long)]
    pub timing: bool,
    /// Serve the recorded responses on loopback and print the address
    #[arg(long, conflicts_with_all = ["directory", "output", "patch", "timeout", "tier", "allow_degraded"])]
    pub serve: bool,
    /// Stop after this many seconds, such as 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// Start even if a sandbox layer is unavailable
    #[arg(long)]
    pub allow_degraded: bool,
}
