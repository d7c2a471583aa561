//! Arguments of what lists, shows and moves sessions.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// The project
    #[arg(short = 'C', long = "project", value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Lists those of every project
    #[arg(long)]
    pub all: bool,
    /// Lists sessions with this text in what was said or run
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Prints JSON, an object a line
    #[arg(long)]
    pub json: bool,
    /// Something else to do
    #[command(subcommand)]
    pub command: Option<SessionsCommand>,
}

/// The commands of `bailiwick sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Deletes old sessions, of every project or of one
    Prune(PruneArgs),
    /// Deletes sessions that are named, with all that belongs to them
    Delete(DeleteArgs),
}

/// Arguments of `sessions prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Deletes those of this project alone [default: of every project]
    #[arg(short = 'C', long = "project", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Deletes those that nobody wrote to for so many days
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u64>,
    /// Deletes the oldest while they are larger together
    #[arg(long, value_name = "MIB")]
    pub larger_than: Option<u64>,
    /// Deletes nothing, and lists what it would delete
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `sessions delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The sessions, by their names or the beginnings of them
    #[arg(required = true, value_name = "SESSION")]
    pub sessions: Vec<String>,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowSessionArgs {
    /// The session, by its name or its log [default: the last]
    pub session: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// The form
    #[arg(long, value_enum, value_name = "FORM", default_value_t = SessionOutput::Text)]
    pub output: SessionOutput,
    /// Shows one agent alone, as in `1.2`
    #[arg(long, value_name = "ID")]
    pub agent: Option<String>,
    /// Cuts and folds nothing
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
    /// The session, by its name or its log [default: the last]
    pub session: Option<String>,
    /// A file that does not exist yet [default: standard output]
    pub file: Option<PathBuf>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Keeps every byte, with the secrets that are in it
    #[arg(long)]
    pub no_redact: bool,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file that `export` wrote
    pub file: PathBuf,
    /// The project that it goes on in [default: as it was]
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
}
