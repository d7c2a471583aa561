use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use boundary::monitor::TempError;
use boundary::policy::{FollowError, ProjectError};

use crate::process::directories::DirectoriesError;
use crate::process::exit::Exit;

/// Error because of which the sandbox of a session could not be prepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    /// The paths of the directories for Bailiwick's own files are unknown.
    #[error(transparent)]
    Directories(#[from] DirectoriesError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A path in a flag does not exist, or is one to which agents may not have access.
    #[error("{flag} {path}: {why}")]
    Path {
        flag: &'static str,
        path: PathBuf,
        /// Reason, as the end of a sentence that begins with the path.
        why: String,
    },
    /// The project's owner, as whom workers run, cannot execute Bailiwick's programs.
    #[error(
        "{program}: a worker for this project runs as uid {uid}, which cannot open {closed}\n  hint: install Bailiwick's programs where everybody can execute them, as in /usr/local/bin, or run as the project's owner"
    )]
    Programs {
        program: PathBuf,
        uid: u32,
        /// First directory in the program's path that this user cannot enter.
        closed: PathBuf,
    },
    /// Directories that agents may write contain too many hidden files.
    #[error("{0}\n  hint: hide subdirectories instead, or do not make the directory writable")]
    TooMuchHidden(#[from] FollowError),
    /// A value of `--env` has no name of a variable.
    #[error("--env {0:?}: expected NAME or NAME=VALUE, with a name of letters, digits and underscores")]
    Env(OsString),
    #[error(transparent)]
    Temp(#[from] TempError),
    /// A session was killed during a command, and the user has not decided about the command's changes.
    #[error("cannot start in this project: {0}")]
    Leftovers(io::Error),
    #[error("cannot prepare to start processes: {0}")]
    System(#[from] io::Error),
}

impl SetupError {
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
