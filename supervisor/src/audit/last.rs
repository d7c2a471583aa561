//! The last session of a project, by the first event of each log.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ipc::event::{EventKind, SessionEvent};

/// The most bytes of a first event; a longer line is none of ours.
const LONGEST: u64 = 1 << 20;

/// The log of the last session in `project`, a canonical path. Logs are named by UUIDs of version 7, which sort by time.
pub(super) fn last_of(sessions: &Path, project: &Path) -> io::Result<Option<PathBuf>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(sessions)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            logs.push(path);
        }
    }
    logs.sort_unstable();
    Ok(logs.into_iter().rev().find(|log| is_of(log, project).unwrap_or(false)))
}

fn is_of(log: &Path, project: &Path) -> io::Result<bool> {
    let mut first = String::new();
    BufReader::new(File::open(log)?.take(LONGEST)).read_line(&mut first)?;
    let event: SessionEvent = serde_json::from_str(&first)?;
    Ok(matches!(&event.kind, EventKind::SessionStarted(started) if started.project.as_path() == project))
}
