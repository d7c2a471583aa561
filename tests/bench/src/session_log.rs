//! Benchmarks of the session log: appending to it, and reading it.

use std::time::Instant;

use ipc::id::AgentId;
use protocol::event::{EventKind, ObservedBy};
use supervisor::journal::session::{SessionLog, load};

use super::stats::{BenchReport, Measurement};
use super::{BenchError, BenchSetup};

const LINES: usize = 100_000;

/// Number of bytes of tool output in each event.
const CONTENT: usize = 200;

const ROUNDS: usize = 10;

/// Measures an append, and the reading of a log of 100,000 lines. Reading verifies the log's chain of digests.
pub(super) fn session_log(_: &BenchSetup) -> Result<BenchReport, BenchError> {
    let state = tempfile::tempdir()?;
    let mut log = SessionLog::create(state.path(), &"bench".into())?;
    let agent = AgentId::root();
    let mut appended = Vec::with_capacity(LINES);
    for _ in 0..LINES {
        let kind = EventKind::UserMessage { text: "said ".repeat(CONTENT / 5), images: vec![] };
        let began = Instant::now();
        log.append(&agent, ObservedBy::Supervisor, kind)?;
        appended.push(began.elapsed());
    }
    let mut loaded = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let read = load(log.path())?;
        loaded.push(began.elapsed());
        if read.tree.len() != LINES || !read.is_intact() {
            return Err("the log did not come back whole".into());
        }
    }
    let rows = vec![
        Measurement::of_times("append of an event", &appended),
        Measurement::of_times("load of 100,000 events, chain verified", &loaded),
    ];
    let [append, load] = [0, 1].map(|row: usize| rows[row].p10);
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("append of an event, µs", append, 10.0);
    report.absolute("load of 100,000 events, ms", load / 1000.0, 300.0);
    Ok(report)
}
