//! Operations that are tried inside a confinement, and their results: one JSON object a line in each direction.

use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// An operation that changes no file, even if it succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Probe {
    /// Opens a file to read it, or a directory to list it.
    Read {
        /// The file or directory to open.
        path: WirePath,
    },
    /// Opens a file for appending without writing; in a directory, creates a file without a name.
    Write {
        /// The file to open, or the directory to create a file in.
        path: WirePath,
    },
    /// Asks if a file could be executed, without executing it (execveat(2), `AT_EXECVE_CHECK`).
    Execute {
        /// The file to be executed.
        path: WirePath,
    },
    /// Connects to a unix socket, sends nothing, and closes. A listener notices the connection.
    Connect {
        /// Path of the socket.
        path: WirePath,
    },
}

/// The result of a tried operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The operation succeeded.
    Done,
    /// The kernel denied the operation.
    Refused {
        /// The errno of the system call.
        errno: i32,
        /// True if file permissions would have allowed the operation.
        permitted_by_mode: bool,
    },
    /// The operation was not tried.
    Untried {
        /// The reason why it was not tried.
        why: String,
    },
}
