//! Why nothing could be started, and the exit code that says so.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use boundary::monitor::TempError;
use boundary::policy::{FollowError, ProjectError};

use crate::process::directories::DirectoriesError;
use crate::process::exit::Exit;

/// The reason why nothing could be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    /// No place for our own files.
    #[error(transparent)]
    Directories(#[from] DirectoriesError),
    /// The project is missing or refused.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A path of a flag does not exist, or cannot be granted.
    #[error("{flag} {path}: {why}")]
    Path {
        flag: &'static str,
        /// Its value.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The project's owner cannot execute our programs.
    #[error(
        "{program}: a worker for this project runs as uid {uid}, which cannot open {closed}\n  hint: install Bailiwick's programs where everybody can execute them, as in /usr/local/bin, or run as the project's owner"
    )]
    Programs {
        program: PathBuf,
        uid: u32,
        /// Where the way ends.
        closed: PathBuf,
    },
    /// Too much is hidden inside what may be written.
    #[error("{0}\n  hint: hide subdirectories instead, or do not make the directory writable")]
    TooMuchHidden(#[from] FollowError),
    /// `--env` names no variable.
    #[error("--env {0:?}: expected NAME or NAME=VALUE, with a name of letters, digits and underscores")]
    Env(OsString),
    /// No temp directory.
    #[error(transparent)]
    Temp(#[from] TempError),
    /// An earlier session was ended in the middle of a command, and nobody said whose its changes are.
    #[error("cannot start in this project: {0}")]
    Leftovers(io::Error),
    /// The process itself is in trouble.
    #[error("cannot prepare to start processes: {0}")]
    System(#[from] io::Error),
}

impl SetupError {
    /// The exit code that it means.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Directories(_)
            | Self::Project(_)
            | Self::TooMuchHidden(_)
            | Self::Path { .. }
            | Self::Env(_) => Exit::Usage,
            Self::Programs { .. } | Self::Temp(_) | Self::Leftovers(_) | Self::System(_) => Exit::NoSandbox,
        }
    }
}
