//! Arguments of `rewind`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ipc::event::RewindScope;

/// Arguments of `rewind`.
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The session: its name, or the beginning of it [default: the last one of the project]
    pub session: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Takes back your message with this number, and all behind it
    #[arg(long, value_name = "N")]
    pub to: Option<usize>,
    /// Takes back one of the two alone: files or conversation
    #[arg(long, value_enum, value_name = "PART")]
    pub only: Option<Part>,
    /// Undoes the last rewind
    #[arg(long, conflicts_with_all = ["to", "only"])]
    pub undo: bool,
    /// Asks nobody, and does exactly what was shown with this digest
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,
}

/// A part of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The files of the project
    Files,
    /// The conversation
    Conversation,
}

impl RewindArgs {
    /// The parts that are taken back.
    pub(crate) const fn scope(&self) -> RewindScope {
        match self.only {
            None => RewindScope::Both,
            Some(Part::Files) => RewindScope::Files,
            Some(Part::Conversation) => RewindScope::Conversation,
        }
    }
}
