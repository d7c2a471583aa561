//! `bailiwick sessions`: the sessions that have a log, by the beginning of each.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use ipc::event::{EventKind, SessionEvent, SessionStarted};
use jiff::Timestamp;
use serde_json::json;

use crate::args::SessionsArgs;
use crate::directories::Directories;
use crate::exit::Exit;
use crate::messages::{complain, harmless};
use crate::session::logs;

/// The most events that are read of a log until the user's first message.
const MOST_EVENTS: usize = 64;

/// The longest line that is read; a longer one is no beginning of a session.
const LONGEST: u64 = 4 << 20;

/// The columns of a first message.
const COLUMNS: usize = 100;

/// A session.
struct Listed {
    log: PathBuf,
    started: SessionStarted,
    began_ms: u64,
    /// The user's first message.
    message: String,
    bytes: u64,
    changed: Option<Timestamp>,
}

/// Lists them.
pub(super) fn run(args: &SessionsArgs) -> Exit {
    let directories = match Directories::of_process() {
        Ok(directories) => directories,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    let project = args.directory.canonicalize().unwrap_or_else(|_| args.directory.clone());
    let logs = match logs(&directories.sessions()) {
        Ok(logs) => logs,
        Err(error) => {
            complain(&format!("cannot list the sessions: {error}"));
            return Exit::Internal;
        }
    };
    let is_wanted = |listed: &Listed| {
        let of_project = args.all || listed.started.project.as_path() == project;
        of_project && args.search.as_ref().is_none_or(|text| listed.message.contains(text))
    };
    let listed: Vec<_> = logs.iter().filter_map(|log| read(log)).filter(is_wanted).collect();
    match print(&listed, args) {
        Ok(()) => Exit::Done,
        Err(_) => Exit::Internal,
    }
}

/// The beginning of a log; none where that is no session's.
fn read(log: &Path) -> Option<Listed> {
    let file = File::open(log).ok()?;
    let metadata = file.metadata().ok()?;
    let mut lines = BufReader::new(file);
    let mut next = || {
        let mut line = String::new();
        let read = io::Read::take(&mut lines, LONGEST).read_line(&mut line).ok()?;
        (read > 0).then(|| serde_json::from_str::<SessionEvent>(&line).ok())?
    };
    let first = next()?;
    let EventKind::SessionStarted(started) = first.kind else { return None };
    let message = std::iter::from_fn(next).take(MOST_EVENTS).find_map(|event| match event.kind {
        EventKind::UserMessage { text, .. } => Some(text),
        _ => None,
    });
    Some(Listed {
        log: log.to_owned(),
        started,
        began_ms: first.time_ms,
        message: message.unwrap_or_default(),
        bytes: metadata.len(),
        changed: metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok()),
    })
}

fn print(sessions: &[Listed], args: &SessionsArgs) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for session in sessions {
        let id = session.log.file_stem().unwrap_or_default().to_string_lossy();
        if args.json {
            let value = json!({
                "id": id,
                "log": session.log,
                "project": session.started.project,
                "model": session.started.model,
                "activity": session.started.activity,
                "began_ms": session.began_ms,
                "changed": session.changed,
                "bytes": session.bytes,
                "message": session.message,
            });
            serde_json::to_writer(&mut out, &value)?;
            writeln!(out)?;
            continue;
        }
        let changed = session.changed.map(|time| time.strftime("%Y-%m-%d %H:%M UTC").to_string());
        let project = if args.all { format!("    {}\n", session.started.project) } else { String::new() };
        let text = format!(
            "{id}  {}\n    {}\n{project}",
            changed.unwrap_or_default(),
            tui::cut(session.message.lines().next().unwrap_or("(nothing was said)"), COLUMNS),
        );
        write!(out, "{}", harmless(&text))?;
    }
    if sessions.is_empty() && !args.json {
        writeln!(io::stderr(), "no sessions; --all lists those of every project")?;
    }
    out.flush()
}
