//! `bailiwick sessions`: lists the sessions that have a log, from the index.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::json;

use crate::journal::sessions::{Index, ListedSession, Needle};
use crate::process::directories::Directories;
use crate::process::exit::{Exit, printed};
use crate::process::messages::{complain, harmless, time};
use crate::settings::args::{SessionsArgs, SessionsCommand};

use super::{delete, prune};

/// Width in columns of a message or a found line.
const COLUMNS: usize = 100;

pub(super) fn run(args: &SessionsArgs) -> Exit {
    let directories = match Directories::of_process() {
        Ok(directories) => directories,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    match &args.command {
        Some(SessionsCommand::Prune(args)) => return prune::run(args, &directories),
        Some(SessionsCommand::Delete(args)) => return delete::run(args, &directories),
        None => {}
    }
    let sessions = match Index::open(&directories.state).sessions() {
        Ok(sessions) => sessions,
        Err(error) => {
            complain(&format!("cannot list the sessions: {error}"));
            return Exit::Internal;
        }
    };
    printed(print(&found(sessions, args), args), Exit::Done)
}

struct FoundSession {
    session: ListedSession,
    line: Option<String>,
}

/// Returns the sessions that match the arguments.
fn found(sessions: Vec<ListedSession>, args: &SessionsArgs) -> Vec<FoundSession> {
    let project = args.directory.canonicalize().unwrap_or_else(|_| args.directory.clone());
    let of_project = sessions.into_iter().filter(|one| args.all || one.summary.project.as_path() == project);
    let Some(text) = &args.search else {
        return of_project.map(|session| FoundSession { session, line: None }).collect();
    };
    let needle = Needle::new(text);
    let with_line = |session: ListedSession| {
        let line = Some(needle.line_in(&session.log)?);
        Some(FoundSession { session, line })
    };
    of_project.filter_map(with_line).collect()
}

fn print(sessions: &[FoundSession], args: &SessionsArgs) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for session in sessions {
        if args.json {
            serde_json::to_writer(&mut out, &object(session))?;
            writeln!(out)?;
        } else {
            out.write_all(harmless(&lines(session, args.all)).as_bytes())?;
        }
    }
    if sessions.is_empty() && !args.json {
        let none = if args.search.is_some() { "no session contains this text" } else { "no sessions" };
        let hint = if args.all { "" } else { "; --all includes every project" };
        writeln!(io::stderr(), "{none}{hint}")?;
    } else if !args.json {
        let bytes = sessions.iter().map(|found| found.session.bytes).sum();
        writeln!(io::stderr(), "{}, {}", counted(sessions.len()), size(bytes))?;
    }
    out.flush()
}

fn object(found: &FoundSession) -> serde_json::Value {
    let FoundSession { session, line } = found;
    let ListedSession { log, bytes, summary, .. } = session;
    json!({
        "id": id(session),
        "log": log,
        "project": summary.project,
        "model": summary.model,
        "activity": summary.activity,
        "began_ms": summary.began_ms,
        "changed": changed(session),
        "bytes": bytes,
        "message": summary.message,
        "answer": summary.answer,
        "changed_files": summary.changed_files,
        "usage": summary.usage,
        "tokens": summary.usage.total(),
        "cost_usd": summary.cost_usd,
        "cost_known_usd": summary.known_usd,
        "imported": summary.imported,
        "match": line,
    })
}

fn lines(found: &FoundSession, all: bool) -> String {
    let FoundSession { session, line } = found;
    let ListedSession { bytes, summary, .. } = session;
    let changed = changed(session).map(time::local);
    let imported = if summary.imported { " · imported" } else { "" };
    let spent = summary.account();
    let project = if all {
        format!("    {}\n", tui::cut(&summary.project.to_string(), COLUMNS))
    } else {
        String::new()
    };
    let message = summary.message.lines().next().filter(|message| !message.is_empty());
    let line = line.as_ref().map(|line| format!("    > {}\n", tui::cut(line, COLUMNS))).unwrap_or_default();
    let last = summary.last_words().map(|answer| format!("→ {}", tui::cut(answer, COLUMNS)));
    let end = [summary.changes(), last].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let end = if end.is_empty() { end } else { format!("    {end}\n") };
    format!(
        "{}  {}  {} · {} · {spent}{imported}\n    {}\n{end}{project}{line}",
        id(session),
        changed.unwrap_or_default(),
        size(*bytes),
        tui::cut(&summary.model, COLUMNS),
        tui::cut(message.unwrap_or("(no messages)"), COLUMNS),
    )
}

fn id(session: &ListedSession) -> String {
    session.log.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn changed(session: &ListedSession) -> Option<Timestamp> {
    Timestamp::try_from(session.changed).ok()
}

pub(super) fn counted(sessions: usize) -> String {
    if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") }
}

pub(super) fn size(bytes: u64) -> String {
    let tenths = |unit: u64, name| {
        let (whole, tenth) = (bytes / unit, bytes % unit * 10 / unit);
        if whole < 10 { format!("{whole}.{tenth} {name}") } else { format!("{whole} {name}") }
    };
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => tenths(1 << 10, "KiB"),
        0x10_0000..0x4000_0000 => tenths(1 << 20, "MiB"),
        _ => tenths(1 << 30, "GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_few_characters() {
        let sizes = [0, 1023, 1024, 1536, 20 << 10, (1 << 20) + (1 << 19), 3 << 30];
        assert_eq!(
            sizes.map(size),
            ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "20 KiB", "1.5 MiB", "3.0 GiB"]
        );
    }
}
