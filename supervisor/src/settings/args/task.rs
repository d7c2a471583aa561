//! What runs a task.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use protocol::cost::Usd;

use super::values::{amount, seconds, task};
use super::{
    ActivityArg, ConfinementArgs, DeniedArg, ExecCommand, ModeArg, ModelArgs, OutputFormat, ProfileArg,
    TierArg,
};

/// Arguments of the terminal UI.
#[derive(Debug, Args)]
pub(crate) struct TuiArgs {
    /// The first task
    #[arg(value_parser = task)]
    pub prompt: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Asks before changes, makes or denies them [default: settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Makes a plan for your approval, or executes the task
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Records the traffic with the model in a new directory
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Prints lines and asks in words, for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
    /// Goes on with the last session of the project
    #[arg(short = 'c', long = "continue")]
    pub goes_on: bool,
    /// Goes on with this session
    #[arg(skip)]
    pub session: Option<String>,
    /// Has a copy of it go on
    #[arg(skip)]
    pub forks: bool,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session's name or its beginning [default: choose from a list]
    pub session: Option<String>,
    /// Leaves the session as it is, and goes on with a copy
    #[arg(long)]
    pub fork: bool,
    /// The project [default: that of the session]
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Asks before changes, makes or denies them [default: settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `exec`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub(crate) struct ExecArgs {
    /// The task [default: standard input, as with `-`]
    pub prompt: Option<String>,
    /// Runs this command of your own; the task is its arguments
    #[arg(long, value_name = "NAME", conflicts_with = "record")]
    pub command: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Asks before changes, makes or denies them
    #[arg(long, value_enum, default_value_t = ModeArg::Deny)]
    pub mode: ModeArg,
    /// Makes a plan and prints its path, or executes the task
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// Gives the agent all tools, or a shell and a short prompt
    #[arg(long, value_enum, default_value_t = ProfileArg::Full, conflicts_with = "record")]
    pub profile: ProfileArg,
    /// Executes up to this many plans that need nothing beyond the flags
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub approve_plan: Option<u32>,
    /// Goes on with this session: its name, or the beginning of it
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["record", "goes_on"])]
    pub resume: Option<String>,
    /// Goes on with the last session of the project
    #[arg(short = 'c', long = "continue", conflicts_with = "record")]
    pub goes_on: bool,
    /// Goes on with a copy, and leaves the session as it is
    #[arg(long)]
    pub fork: bool,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Prints this on standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
    /// Adds the pieces of the model's reply to `--output stream-json`
    #[arg(long)]
    pub deltas: bool,
    /// Exit status of a turn that ends after a denied call
    #[arg(long, value_enum, default_value_t = DeniedArg::Fail)]
    pub denied: DeniedArg,
    /// Requires an answer in JSON that fits this JSON Schema
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub schema: Option<PathBuf>,
    /// Writes the change as a diff for `git apply`, on every status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Shows the model this picture with the task
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Offers the agent the tools of this MCP server of yours
    #[arg(long, value_name = "NAME")]
    pub mcp: Vec<String>,
    /// Ends the run after this many replies to all its agents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Ends the run with any agent's reply that reaches these tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Ends the run with any agent's reply that reaches these dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Takes answers to approvals from a front end at this socket
    #[arg(long, value_name = "PATH")]
    pub approval_socket: Option<PathBuf>,
    /// Ends the run after this many seconds, as in 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Records the traffic with the model in a new directory
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Keeps no copies of the project's files for `bailiwick rewind`
    #[arg(long)]
    pub no_rewind: bool,
    /// One run of a batch, whose process this is: the run ends with it, and its caches end with the run
    #[arg(long, value_name = "PID", hide = true)]
    pub batch: Option<i32>,
    /// A task of its own kind
    #[command(subcommand)]
    pub inner: Option<ExecCommand>,
}

impl ExecArgs {
    /// Returns the arguments of a command line without flags, for commands whose run is one of `exec`.
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
            mcp: Vec::new(),
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
    /// The directory of the recording
    #[arg(value_name = "DIR")]
    pub recording: PathBuf,
    /// The project: as it was when the recording was made
    #[arg(short = 'C', value_name = "PROJECT", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Prints this on standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
    /// Writes the change as a diff for `git apply`, on every status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Lets each piece of a response come when it came
    #[arg(long)]
    pub timing: bool,
    /// Serves the recorded responses on loopback instead, and prints the address
    #[arg(long, conflicts_with_all = ["directory", "output", "patch", "timeout", "tier", "allow_degraded"])]
    pub serve: bool,
    /// Ends the run after this many seconds, as in 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Takes the best sandbox of this machine, or one tier alone
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
}
