use std::fs;
use std::io;
use std::path::Path;

use crate::journal::checkpoints;
use crate::journal::session::{LogError, Removal, remove};

#[derive(Debug)]
pub(crate) enum Deletion {
    Done(Deleted),
    /// The session was not deleted, because a process has it open.
    Held,
}

#[derive(Debug)]
pub(crate) struct Deleted {
    pub bytes: u64,
    pub had_checkpoints: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DeleteError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the log is deleted, but not the other files of the session: {0}")]
    Rest(#[from] io::Error),
}

/// Deletes the log of a session, its checkpoints, and the socket that a killed process may have left.
pub(crate) fn delete(state: &Path, log: &Path) -> Result<Deletion, DeleteError> {
    let bytes = log.metadata().map_or(0, |log| log.len());
    if remove(log, false)? == Removal::Held {
        return Ok(Deletion::Held);
    }
    let session = log.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let had_checkpoints = checkpoints::remove(state, session)?;
    match fs::remove_file(state.join("live").join(session)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(Deletion::Done(Deleted { bytes, had_checkpoints })),
    }
}
