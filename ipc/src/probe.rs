//! Acts that are tried inside a confinement, and what became of them: one JSON object a line, each way.

use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// An act that changes no file where it succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Probe {
    /// Opens a file to read it, or a directory to list it.
    Read {
        /// The path that was tried.
        path: WirePath,
    },
    /// Opens a file to append to it, and appends nothing; makes a file without a name in a directory.
    Write {
        /// The path that was tried.
        path: WirePath,
    },
    /// Asks whether a file could be executed, and executes nothing (execveat(2), `AT_EXECVE_CHECK`).
    Execute {
        /// The path that was tried.
        path: WirePath,
    },
    /// Connects to a unix socket, sends nothing, and closes. A listener there sees the connection.
    Connect {
        /// The path.
        path: WirePath,
    },
}

/// Outcome of an act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The act succeeded.
    Done,
    /// The kernel refused it.
    Refused {
        /// The error number.
        errno: i32,
        /// True if plain permissions would have allowed it.
        permitted_by_mode: bool,
    },
    /// The act was not tried.
    Untried {
        /// The reason for it.
        why: String,
    },
}
