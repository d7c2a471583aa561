//! The logs that there are, and the last one of a project, by the first event of each.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ipc::event::{EventKind, SessionEvent, SessionStarted};

/// The most bytes of a first event; a longer line is none of ours.
const LONGEST: u64 = 1 << 20;

/// The log of the session in `project`, a canonical path, that was written to last.
pub(crate) fn last_of(sessions: &Path, project: &Path) -> io::Result<Option<PathBuf>> {
    Ok(logs(sessions)?.into_iter().rev().find(|log| is_of(log, project).unwrap_or(false)))
}

/// Every log; the one that was written to last is the last. Names are UUIDs of version 7: those of one moment sort by their beginning.
pub(crate) fn logs(sessions: &Path) -> io::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    let entries = match fs::read_dir(sessions) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            // One that has just been removed is the oldest.
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            logs.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
    }
    logs.sort_unstable();
    Ok(logs.into_iter().map(|(_, path)| path).collect())
}

/// The beginning of a session, by the first event of its log; none where that is not whole.
pub(crate) fn begun(log: &Path) -> Option<SessionStarted> {
    match first(log).ok()?.kind {
        EventKind::SessionStarted(started) => Some(started),
        _ => None,
    }
}

fn is_of(log: &Path, project: &Path) -> io::Result<bool> {
    Ok(
        matches!(&first(log)?.kind, EventKind::SessionStarted(started) if started.project.as_path() == project),
    )
}

fn first(log: &Path) -> io::Result<SessionEvent> {
    let mut first = String::new();
    BufReader::new(File::open(log)?.take(LONGEST)).read_line(&mut first)?;
    Ok(serde_json::from_str(&first)?)
}
