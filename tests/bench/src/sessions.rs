//! Benchmarks of long sessions: continuing one, listing many, and the snapshot of a large project between two turns.

use std::fs;
use std::path::Path;
use std::time::Duration;

use agent::core::standing;
use ipc::id::{AgentId, ConversationId, EventId};
use protocol::event::{AssistantMessage, EventKind, ObservedBy, SessionEvent, TokenUsage};
use serde_json::json;
use serde_json::value::RawValue;
use supervisor::engine::driver::Rewinder;
use supervisor::engine::opening::observer;
use supervisor::journal::checkpoints::At;
use supervisor::journal::session::SessionLog;
use supervisor::journal::sessions::Index;

use super::large_log::event_kind;
use super::stats::{BenchReport, Measurement, timed};
use super::{BenchError, BenchSetup};

// Number of bytes of a message, and number of messages and of replies: 10 MB in all.
const MESSAGE: usize = 5000;
const TURNS: usize = 1000;

const SESSIONS: usize = 10_000;

// Number of files in a large project, and in one directory.
const FILES: usize = 20_000;
const PER_DIRECTORY: usize = 200;

const ROUNDS: usize = 10;

/// Measures the start of a continued session: the log is read and verified, and the conversation is rebuilt.
pub(super) fn resume(_: &BenchSetup) -> Result<BenchReport, BenchError> {
    let state = tempfile::tempdir()?;
    let path = long_session(state.path())?;
    let mut taken = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        taken.push(timed(|| {
            let reopened = SessionLog::reopen(&path, &mut |_, _| ())?;
            if standing(&reopened.needed.events).len() == TURNS * 2 {
                Ok(())
            } else {
                Err("events are missing".into())
            }
        })?);
    }
    let mut report = BenchReport {
        rows: vec![Measurement::of_times("a log of 10 MB, opened to go on", &taken)],
        ..BenchReport::default()
    };
    report.absolute("a log of 10 MB, opened to go on, ms", report.rows[0].p10 / 1000.0, 300.0);
    Ok(report)
}

fn long_session(state: &Path) -> Result<std::path::PathBuf, BenchError> {
    let mut log = SessionLog::create(state, &ConversationId::from("bench"))?;
    let words = "word ".repeat(MESSAGE / 5);
    for turn in 0..TURNS {
        let said = EventKind::UserMessage { text: words.clone(), images: vec![] };
        log.append(&AgentId::root(), ObservedBy::Supervisor, said)?;
        let block = json!({"type": "text", "text": words}).to_string();
        let reply = AssistantMessage {
            message_id: turn.to_string(),
            model: "bench".to_owned(),
            content: vec![RawValue::from_string(block)?],
            stop_reason: "end_turn".to_owned(),
            usage: TokenUsage::default(),
            estimated: false,
            cost_usd: None,
        };
        log.append(&AgentId::root(), ObservedBy::Supervisor, EventKind::AssistantMessage(reply))?;
    }
    Ok(log.path().to_owned())
}

/// Measures the time to list 10,000 sessions, with the index of sessions and without it.
pub(super) fn listed(_: &BenchSetup) -> Result<BenchReport, BenchError> {
    let state = tempfile::tempdir()?;
    let mut log = SessionLog::create(state.path(), &ConversationId::from("bench"))?;
    let started = json!({
        "version": "0", "project": "/p", "activity": "execute", "mode": "ask", "model": "m", "provider": "p", "rights": "none",
    });
    log.append(&AgentId::root(), ObservedBy::Supervisor, event_kind("session_started", &started)?)?;
    let said = EventKind::UserMessage { text: "do it".to_owned(), images: vec![] };
    let _: SessionEvent = log.append(&AgentId::root(), ObservedBy::Supervisor, said)?;
    for number in 1..SESSIONS {
        fs::copy(log.path(), log.path().with_file_name(format!("bench-{number}.jsonl")))?;
    }
    let list = || {
        let sessions = Index::open(state.path()).sessions()?;
        if sessions.len() == SESSIONS { Ok(()) } else { Err("sessions are missing".into()) }
    };
    let first = timed(list)?;
    let again = (0..ROUNDS).map(|_| timed(list)).collect::<Result<Vec<_>, _>>()?;
    let rows = vec![
        Measurement::of_times("10,000 sessions listed, without an index", &[first]),
        Measurement::of_times("10,000 sessions listed", &again),
    ];
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("10,000 sessions listed, ms", report.rows[1].p10 / 1000.0, 200.0);
    Ok(report)
}

/// Measures the search of a project of 20,000 files for changes between two turns. One file has changed.
pub(super) fn looks(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let files = setup.sandbox().policy.project.as_path().join("many-files");
    let taken = look_at(setup, &files);
    // Other measurements have the same project.
    fs::remove_dir_all(&files)?;
    let (first, later) = taken?;
    let rows = vec![
        Measurement::of_times("first look at 20,000 files", &[first]),
        Measurement::of_times("look at 20,000 files after a turn", &later),
    ];
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("look at 20,000 files after a turn, ms", report.rows[1].p10 / 1000.0, 150.0);
    report
        .notes
        .push("beside the main loop: a call that may write waits for the first one of its turn".to_owned());
    Ok(report)
}

fn look_at(setup: &BenchSetup, files: &Path) -> Result<(Duration, Vec<Duration>), BenchError> {
    for number in 0..FILES {
        let directory = files.join((number / PER_DIRECTORY).to_string());
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("{number}.rs")), format!("// {number}\n").repeat(20))?;
    }
    let (runtime, state) =
        (tokio::runtime::Builder::new_current_thread().enable_all().build()?, tempfile::tempdir()?);
    let sandbox = setup.sandbox();
    // No agent uses the private temp directory here, so the observer does.
    let observer = observer(sandbox, &sandbox.boundary(None), &sandbox.temp);
    let rewinder = Rewinder::new(observer, state.path().to_owned(), ConversationId::from("bench"));
    let mut number = 0;
    let mut look = || {
        number += 1;
        fs::write(files.join("0/0.rs"), number.to_string())?;
        timed(|| {
            runtime
                .block_on(rewinder.snapshot(At::Messages(vec![EventId(number)])))
                .map(drop)
                .map_err(Into::into)
        })
    };
    let first = look()?;
    Ok((first, (0..ROUNDS).map(|_| look()).collect::<Result<_, BenchError>>()?))
}
