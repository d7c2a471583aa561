//! Arguments of `rewind`.

use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use ipc::path::WirePath;
use protocol::event::RewindScope;

/// Arguments of `rewind`.
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// Name of the session [default: last of the project]
    pub session: Option<String>,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Restore to before your message with this number
    #[arg(long, value_name = "N")]
    pub to: Option<usize>,
    /// Restore only the files, or only the conversation
    #[arg(long, value_enum, value_name = "PART")]
    pub only: Option<RewindPart>,
    /// Restore only this file; may be repeated
    #[arg(long, value_name = "PATH", requires = "to", conflicts_with = "only")]
    pub file: Vec<PathBuf>,
    /// Undo the last rewind
    #[arg(long, conflicts_with_all = ["to", "only"])]
    pub undo: bool,
    /// Restore without asking if the listed changes have this digest
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
    /// Returns the files to restore, relative to the project. The error names a file outside of the project.
    pub(crate) fn files(&self, project: &Path) -> Result<Vec<WirePath>, String> {
        let relative = |file: &PathBuf| {
            let place = self.directory.join(file);
            // A deleted file has a directory, or had one.
            let here = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
            let inside = if place.is_absolute() { place.as_path() } else { file.as_path() };
            let inside =
                inside.strip_prefix(project).or_else(|_| inside.strip_prefix(&here)).unwrap_or(inside);
            let plain = inside.components().all(|component| matches!(component, Component::Normal(_)));
            if plain && !inside.as_os_str().is_empty() {
                Ok(WirePath::from(inside))
            } else {
                Err(format!("{} is not a file in {}", file.display(), project.display()))
            }
        };
        self.file.iter().map(relative).collect()
    }

    pub(crate) fn scope(&self) -> RewindScope {
        match self.only {
            _ if !self.file.is_empty() => RewindScope::Files,
            None => RewindScope::Both,
            Some(RewindPart::Files) => RewindScope::Files,
            Some(RewindPart::Conversation) => RewindScope::Conversation,
        }
    }
}
