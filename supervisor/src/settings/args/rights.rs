//! Arguments of `sandbox`, `doctor`, `audit` and `explain`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{AccessArg, AgentArgs, ConfinementArgs, SubjectArg, TierArg};

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: that of CMD (128+n by signal), or 5 if CMD never started.")]
pub(crate) struct SandboxArgs {
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Project access: write, or read only
    #[arg(long, value_enum, default_value_t = AccessArg::Write)]
    pub access: AccessArg,
    /// Sandbox options.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Process id of the batch that started this step; the command ends with it, and its caches end with the command
    #[arg(long, value_name = "PID", hide = true)]
    pub batch: Option<i32>,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if agents can be sandboxed here, else 5.")]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Also send the provider's API a request without a key
    #[arg(long)]
    pub api: bool,
    /// Show which promises of SECURITY.md hold on this machine, and why
    #[arg(long, conflicts_with = "api")]
    pub promises: bool,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Name or log file of the session [default: the last]
    #[arg(value_name = "ID")]
    pub session: Option<PathBuf>,
    /// Also write an HTML page to this new file
    #[arg(long, value_name = "FILE", conflicts_with = "probe")]
    pub html: Option<PathBuf>,
    /// Try paths, sockets and system calls from inside the sandbox
    ///
    /// The sandbox is that of an agent in the project; the same is tried in the sandbox of each agent that runs now. The results are
    /// compared with the declared access. No file is changed; a server at a reachable unix socket sees a connection without data.
    #[arg(long, conflicts_with = "session")]
    pub probe: bool,
    /// Also list each worker, approval and fault; with `--probe`, each attempt
    #[arg(long)]
    pub verbose: bool,
    /// Agent options.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A path, HOST:PORT, or a command in quotes
    #[arg(value_name = "WHAT")]
    pub what: OsString,
    /// Treat it as a path, an address or a command
    #[arg(long = "as", value_enum, value_name = "KIND")]
    pub kind: Option<SubjectArg>,
    /// Agent options.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
