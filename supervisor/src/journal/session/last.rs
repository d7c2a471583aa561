//! Finds logs: all logs, a log by its name, or the last log of a project. A log's first event names the project.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use protocol::event::{EventKind, NoticeCode, SessionEvent, SessionStarted};

/// Maximum size in bytes of a log's first event.
const LONGEST: u64 = 1 << 20;

/// Maximum size in bytes of the event that ends a log if its session was imported and not continued since.
const LONGEST_MARK: u64 = 4 << 10;

/// Text in every line with a message of the person. No other line contains it, because quotes in a string are escaped.
const SAID: &[u8] = b"\"type\":\"user_message\"";

/// Returns the latest log of a session in `project`, a canonical path. Skips sessions without a message, and imported
/// sessions that were not continued.
pub(crate) fn last_of(sessions: &Path, project: &Path) -> io::Result<Option<PathBuf>> {
    let is_one = |log: &PathBuf| {
        is_of(log, project).unwrap_or(false)
            && !is_just_imported(log).unwrap_or(false)
            && has_message(log).unwrap_or(false)
    };
    Ok(logs(sessions)?.into_iter().rev().find(is_one))
}

/// Finds the log of a session by its name or the beginning of the name. Without a name, returns the log of the
/// project's last session. Fails if no log matches, or more than one.
pub(crate) fn find(sessions: &Path, name: Option<&str>, project: &Path) -> Result<PathBuf, String> {
    let listed = logs(sessions).map_err(|error| format!("{}: {error}", sessions.display()))?;
    let Some(name) = name else {
        let last = last_of(sessions, project);
        let last = last.map_err(|error| format!("{}: {error}", sessions.display()))?;
        return last.ok_or_else(|| none_of(project, &listed));
    };
    if let Some(log) = listed.iter().find(|log| stem(log) == name) {
        return Ok(log.clone());
    }
    let matching: Vec<_> =
        listed.iter().filter(|log| !name.is_empty() && stem(log).starts_with(name)).collect();
    match matching.as_slice() {
        [] => {
            Err(format!("there is no session {name:?}\n  hint: bailiwick sessions --all lists all sessions"))
        }
        [log] => Ok((*log).clone()),
        several => {
            Err(format!("{name:?} begins the names of {} sessions: type more of the name", several.len()))
        }
    }
}

/// Returns the error message for a project that has no session to continue.
fn none_of(project: &Path, logs: &[PathBuf]) -> String {
    let is_imported =
        |log: &&PathBuf| is_of(log, project).unwrap_or(false) && is_just_imported(log).unwrap_or(false);
    let project = project.display();
    match logs.iter().rev().find(is_imported).map(|log| stem(log)) {
        Some(name) => format!(
            "the only session of {project} is {name}, which was imported: name it to continue\n  hint: bailiwick \
             exec --resume {name} or bailiwick resume {name} continues it, bailiwick show {name} shows it"
        ),
        None => {
            format!(
                "there is no session of {project}\n  hint: bailiwick sessions --all lists the sessions of every project"
            )
        }
    }
}

fn stem(log: &Path) -> &str {
    log.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Returns every log, the latest last. Logs with the same time are sorted by name. A name begins with a time (UUID
/// version 7).
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
            // A log that was removed meanwhile counts as the oldest.
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            logs.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
    }
    logs.sort_unstable();
    Ok(logs.into_iter().map(|(_, path)| path).collect())
}

/// Returns the first event of a log; `None` if it is incomplete or of another kind.
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

/// True if the session was imported and not continued since, according to the log's last event.
pub(crate) fn is_just_imported(log: &Path) -> io::Result<bool> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST_MARK)))?;
    let mut end = Vec::new();
    file.take(LONGEST_MARK).read_to_end(&mut end)?;
    let last = end.strip_suffix(b"\n").unwrap_or(&end).rsplit(|byte| *byte == b'\n').next();
    let last = SessionEvent::from_json(last.unwrap_or_default())?;
    Ok(matches!(last.kind, EventKind::Notice { code: NoticeCode::Imported, .. }))
}

/// True if the log contains a message of the person, or is not searched because it has at least [`LONGEST`] bytes.
fn has_message(log: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    File::open(log)?.take(LONGEST).read_to_end(&mut beginning)?;
    Ok(beginning.len() as u64 == LONGEST || memchr::memmem::find(&beginning, SAID).is_some())
}

fn first(log: &Path) -> io::Result<SessionEvent> {
    let mut first = String::new();
    BufReader::new(File::open(log)?.take(LONGEST)).read_line(&mut first)?;
    Ok(SessionEvent::from_json(first.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use ipc::id::{AgentId, ConversationId};
    use protocol::event::ObservedBy;
    use serde_json::json;

    use super::*;
    use crate::journal::session::SessionLog;

    #[test]
    fn the_last_session_is_one_in_which_something_was_said() {
        let state = tempfile::tempdir().unwrap();
        let write = |name: &str, said: Option<&str>| {
            let mut log = SessionLog::create(state.path(), &ConversationId(name.to_owned())).unwrap();
            let started = json!({"type": "session_started", "data": {
                "version": "0", "project": "/p", "activity": "execute", "mode": "ask", "model": "m",
                "provider": "\"type\":\"user_message\"", "rights": "none", "resumed": false,
            }});
            let said = said.map(|text| json!({"type": "user_message", "data": {"text": text}}));
            for kind in std::iter::once(started).chain(said) {
                let kind = serde_json::from_value(kind).unwrap();
                log.append(&AgentId::root(), ObservedBy::Supervisor, kind).unwrap();
            }
            log.path().to_owned()
        };
        let last = || last_of(&state.path().join("sessions"), Path::new("/p")).unwrap();
        write("a", None);
        assert_eq!(last(), None);
        let said = write("b", Some("hello"));
        write("c", None);
        assert_eq!(last(), Some(said));
    }
}
