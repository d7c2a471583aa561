//! Arguments of the commands that list, delete, show, export and import sessions.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Directory of the project
    #[arg(short = 'C', long = "project", value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Include every project
    #[arg(long)]
    pub all: bool,
    /// List sessions with this text in a message or command
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// Another command for sessions
    #[command(subcommand)]
    pub command: Option<SessionsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Delete old sessions, of one project or all
    Prune(PruneArgs),
    /// Delete sessions by name, with their copies of files
    Delete(DeleteArgs),
}

/// Arguments of `sessions prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Delete only sessions of this project [default: every project]
    #[arg(short = 'C', long = "project", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Delete sessions unchanged for this many days
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u64>,
    /// Delete the oldest until all together fit this size
    #[arg(long, value_name = "MIB")]
    pub larger_than: Option<u64>,
    /// List the sessions to delete, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `sessions delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Names of the sessions, or their beginnings
    #[arg(required = true, value_name = "SESSION")]
    pub sessions: Vec<String>,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowSessionArgs {
    /// Name or log file of the session [default: the last]
    pub session: Option<String>,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, value_name = "FORM", default_value_t = SessionOutput::Text)]
    pub output: SessionOutput,
    /// Show only this agent, such as `1.2`
    #[arg(long, value_name = "ID")]
    pub agent: Option<String>,
    /// Show everything in full, without cuts or folds
    #[arg(long)]
    pub full: bool,
}

/// `--output` of `show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionOutput {
    /// Text, in a pager where standard output is a terminal.
    Text,
    /// Markdown, in a pager too.
    Markdown,
    /// One page that loads nothing and runs nothing.
    Html,
    /// The events as they are in the log, one a line.
    Json,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportSessionArgs {
    /// Name or log file of the session [default: the last]
    pub session: Option<String>,
    /// New file to write [default: standard output]
    pub file: Option<PathBuf>,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Export every byte, secrets included
    #[arg(long)]
    pub no_redact: bool,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// File from `export`
    pub file: PathBuf,
    /// Directory of the project to continue in [default: as exported]
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
}
