//! What shows, tries and explains rights.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{AccessArg, AgentArgs, ConfinementArgs, SubjectArg, TierArg};

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: that of CMD (128+n by signal), or 5 if CMD never started.")]
pub(in crate::app) struct SandboxArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Whether the project is writable
    #[arg(long, value_enum, default_value_t = AccessArg::Write)]
    pub access: AccessArg,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if agents can be confined here, else 5.")]
pub(in crate::app) struct DoctorArgs {
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
    /// Asks the provider's API for an answer too, without a key
    #[arg(long)]
    pub api: bool,
    /// What the kernel is to hold programs by: the best that it can, or one tier and no other
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(in crate::app) struct AuditArgs {
    /// A session, by its id or by the file of its log
    #[arg(value_name = "ID", required_unless_present = "probe")]
    pub session: Option<PathBuf>,
    /// Starts a confinement as an agent in the project would have it, tries paths, sockets and system calls from inside, and
    /// compares with what is declared; then the same for each agent that runs now, in the very confinement of its worker. No file is changed; whoever listens at a unix socket that can be reached sees a
    /// connection that says nothing
    #[arg(long, conflicts_with = "session")]
    pub probe: bool,
    /// Whose rights
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(in crate::app) struct ExplainArgs {
    /// A path, HOST:PORT, or a command in quotes
    #[arg(value_name = "WHAT")]
    pub what: OsString,
    /// What it is, where its form does not tell
    #[arg(long = "as", value_enum, value_name = "KIND")]
    pub kind: Option<SubjectArg>,
    /// Whose rights
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}
