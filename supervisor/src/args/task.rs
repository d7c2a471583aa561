//! What runs a task.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ipc::cost::Usd;

use super::values::{amount, seconds, task};
use super::{ActivityArg, ConfinementArgs, DeniedArg, ModeArg, ModelArgs, Output, ProfileArg, TierArg};

/// Arguments of the terminal UI.
#[derive(Debug, Args)]
pub(crate) struct TuiArgs {
    /// The first task
    #[arg(value_parser = task)]
    pub prompt: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// What becomes of what is beyond the rights: `ask` asks you, `auto` makes the project writable and denies the rest, `deny`
    /// leaves it read-only
    /// [default: what the settings say, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// What the agent is there for: `plan` makes a plan and changes nothing; another agent executes it when you approve it
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Writes the traffic with the model into this directory, which is made; see docs/recording.md
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
    /// What becomes of what is beyond the rights [default: what the settings say, or ask]
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
pub(crate) struct ExecArgs {
    /// The task [default: standard input, as with `-`]
    pub prompt: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// What the agent may do without asking: `auto` makes the project writable, `deny` leaves it read-only, and so does
    /// `ask`, where each change is shown and approved
    #[arg(long, value_enum, default_value_t = ModeArg::Deny)]
    pub mode: ModeArg,
    /// What the agent is there for: `plan` makes a plan, prints the path of its file and changes nothing
    #[arg(long, value_enum, default_value_t = ActivityArg::Execute)]
    pub activity: ActivityArg,
    /// Tools of the agent: all, or the shell alone with a short prompt
    #[arg(long, value_enum, default_value_t = ProfileArg::Full, conflicts_with = "record")]
    pub profile: ProfileArg,
    /// With `--activity plan`, executes up to this many plans that need no more than the flags of this run allow; one that
    /// needs more ends the run with status 4
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub approve_plan: Option<u32>,
    /// Goes on with the session of this name, or whose name alone begins so: the task is its next message
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["record", "goes_on"])]
    pub resume: Option<String>,
    /// Goes on with the last session of the project: the task is its next message
    #[arg(short = 'c', long = "continue", conflicts_with = "record")]
    pub goes_on: bool,
    /// With --resume or -c: leaves the session as it is, and goes on with a copy
    #[arg(long)]
    pub fork: bool,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// What is printed on standard output
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Adds the pieces of the model's reply to `--output stream-json`
    #[arg(long)]
    pub deltas: bool,
    /// Exit status of a turn that ends after a denied call
    #[arg(long, value_enum, default_value_t = DeniedArg::Fail)]
    pub denied: DeniedArg,
    /// Writes the change as a diff that `git apply` accepts, whatever the exit status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Shows the model a picture (PNG, JPEG, GIF or WebP) with the task
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Ends the run after this many replies of the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Ends the run when this many tokens are spent in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Ends the run before the next request once it has cost this many US dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Listens at this path for a front end that answers approvals (with `--mode ask`); see docs/protocol.md
    #[arg(long, value_name = "PATH")]
    pub approval_socket: Option<PathBuf>,
    /// Ends the run after this many seconds, as in 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Writes the traffic with the model into this directory, which is made; see docs/recording.md
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// One run of a batch, whose process this is: the run ends with it, and its caches end with the run
    #[arg(long, value_name = "PID", hide = true)]
    pub batch: Option<i32>,
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
    /// What is printed on standard output
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Writes the change as a diff that `git apply` accepts, whatever the exit status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Lets each piece of a response come when it came
    #[arg(long)]
    pub timing: bool,
    /// Runs nothing: serves the responses on loopback, in their order, to whoever asks, and prints the address
    #[arg(long, conflicts_with_all = ["directory", "output", "patch", "timeout", "tier", "allow_degraded"])]
    pub serve: bool,
    /// Ends the run after this many seconds, as in 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// What the kernel is to hold it by: the best that it can, or one tier and no other
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
}
