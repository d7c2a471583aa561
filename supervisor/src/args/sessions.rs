//! Arguments of what lists, shows and moves sessions.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Lists those of every project
    #[arg(long)]
    pub all: bool,
    /// Only those whose first message has this text
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Prints JSON, an object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowSessionArgs {
    /// The session's name, its beginning, or a log [default: the last of the project]
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
