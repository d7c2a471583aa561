//! Arguments of `rewind`.

use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use ipc::path::WirePath;
use protocol::event::RewindScope;

/// Arguments of `rewind`.
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The session, by its name [default: the last of the project]
    pub session: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Takes back your message with this number, and all behind it
    #[arg(long, value_name = "N")]
    pub to: Option<usize>,
    /// Takes back one of the two alone: files or conversation
    #[arg(long, value_enum, value_name = "PART")]
    pub only: Option<RewindPart>,
    /// Takes back this file alone; may be repeated
    #[arg(long, value_name = "PATH", requires = "to", conflicts_with = "only")]
    pub file: Vec<PathBuf>,
    /// Undoes the last rewind
    #[arg(long, conflicts_with_all = ["to", "only"])]
    pub undo: bool,
    /// Asks nobody, and does exactly what was shown with this digest
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,
}

/// A part of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RewindPart {
    /// The files of the project
    Files,
    /// The conversation
    Conversation,
}

impl RewindArgs {
    /// The files that it is about, relative to the project; an error names one outside.
    pub(crate) fn files(&self, project: &Path) -> Result<Vec<WirePath>, String> {
        let relative = |file: &PathBuf| {
            let place = self.directory.join(file);
            // A file that is gone has a directory, or had one.
            let here = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
            let inside = if place.is_absolute() { place.as_path() } else { file.as_path() };
            let inside =
                inside.strip_prefix(project).or_else(|_| inside.strip_prefix(&here)).unwrap_or(inside);
            let plain = inside.components().all(|component| matches!(component, Component::Normal(_)));
            if plain && !inside.as_os_str().is_empty() {
                Ok(WirePath::from(inside))
            } else {
                Err(format!("{} is no file of {}", file.display(), project.display()))
            }
        };
        self.file.iter().map(relative).collect()
    }

    /// The parts that are taken back.
    pub(crate) fn scope(&self) -> RewindScope {
        match self.only {
            _ if !self.file.is_empty() => RewindScope::Files,
            None => RewindScope::Both,
            Some(RewindPart::Files) => RewindScope::Files,
            Some(RewindPart::Conversation) => RewindScope::Conversation,
        }
    }
}
