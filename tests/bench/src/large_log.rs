//! Benchmark of continuing a session with a very long log: time and memory of reading the log.

use std::fs;
use std::path::{Path, PathBuf};

use agent::core::standing;
use ipc::id::{AgentId, ConversationId};
use protocol::event::{EventKind, ObservedBy, SCHEMA, SessionEvent};
use serde_json::{Value, json};
use supervisor::journal::session::SessionLog;

use super::stats::{BenchReport, Measurement, timed};
use super::{BenchError, BenchSetup};

/// Size of the log in MiB. It is so large that only a part of the log is kept in memory.
const MIB: u64 = 64;

/// Environment variable that sets another size of the log, in MiB.
const SIZE: &str = "BAILIWICK_BENCH_LOG_MIB";

/// Number of bytes after which a conversation is summarised.
const CONTEXT: u64 = 800_000;

// Number of steps in a turn, and number of bytes in a call's result.
const STEPS: u64 = 8;
const RESULT: usize = 6000;

pub(super) fn resume(_: &BenchSetup) -> Result<BenchReport, BenchError> {
    let mib = std::env::var(SIZE).ok().and_then(|mib| mib.parse().ok()).unwrap_or(MIB);
    let state = tempfile::tempdir()?;
    let path = written(state.path(), mib << 20)?;
    // The peak counts from here on (proc_pid_clear_refs(5)).
    fs::write("/proc/self/clear_refs", "5")?;
    let taken = timed(|| {
        let reopened = SessionLog::reopen(&path, &mut |_, _| ())?;
        if standing(&reopened.needed.events).is_empty() { Err("events are missing".into()) } else { Ok(()) }
    })?;
    let peak = peak()?;
    let rows = vec![
        Measurement::of_times("a large log, opened to go on", &[taken]),
        Measurement::of("the memory of it at most", "MiB", &[peak]),
    ];
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute(
        "1 GiB at this speed, s",
        taken.as_secs_f64() * 1024.0 / f64::from(u32::try_from(mib)?),
        20.0,
    );
    report.absolute("the memory of it at most, MiB", peak, 400.0);
    report.notes.push(format!("a log of {mib} MiB; {SIZE}=1024 takes a larger one"));
    Ok(report)
}

/// Returns the maximum resident memory of this process since the last reset of the maximum, in MiB.
fn peak() -> Result<f64, BenchError> {
    let text = fs::read_to_string("/proc/self/status")?;
    let value = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    Ok(value.ok_or("no VmHWM in status")?.parse::<f64>()? / 1024.0)
}

/// Writes the log of a long session with at least `size` bytes below `state`, and returns the log's path.
fn written(state: &Path, size: u64) -> Result<PathBuf, BenchError> {
    let mut writer =
        LogWriter { log: SessionLog::create(state, &ConversationId::from("bench"))?, call: 0, written: 0 };
    writer.add(
        "1",
        "session_started",
        &json!({"version": "0", "project": "/p", "activity": "execute", "mode": "ask", "model": "m",
        "provider": "p", "rights": "none"}),
    )?;
    let (mut turn, mut since) = (0, 0);
    while writer.written < size {
        turn += 1;
        let before = writer.written;
        writer.add(
            "1",
            "user_message",
            &json!({"text": format!("{turn}: {}", "please mend it ".repeat(20))}),
        )?;
        for _ in 0..STEPS {
            writer.step("1")?;
        }
        since += writer.written - before;
        if turn % 5 == 0 {
            writer.sub_agent(&format!("1.{turn}"))?;
        }
        let usage = usage();
        writer.add(
            "1",
            "turn_finished",
            &json!({"reason": "done", "steps": STEPS, "usage": usage, "duration_ms": 1}),
        )?;
        if since > CONTEXT {
            since = 0;
            writer.add(
                "1",
                "context_compacted",
                &json!({"cause": "limit", "summary": "conversation", "tokens_before": 9, "tokens_after": 1,
                "usage": usage, "first_message": ["what was done so far ".repeat(200)]}),
            )?;
        }
    }
    Ok(writer.log.path().to_owned())
}

fn usage() -> Value {
    json!({"input": 9, "cache_creation": 0, "cache_read": 0, "output": 9})
}

struct LogWriter {
    log: SessionLog,
    call: u64,
    written: u64,
}

impl LogWriter {
    fn add(&mut self, agent: &str, kind: &str, data: &Value) -> Result<(), BenchError> {
        self.log.append(&AgentId::from(agent), ObservedBy::Supervisor, event_kind(kind, data)?)?;
        self.written = fs::metadata(self.log.path())?.len();
        Ok(())
    }

    /// Appends a reply with a tool call, and the call's result.
    fn step(&mut self, agent: &str) -> Result<(), BenchError> {
        self.call += 1;
        let (call, id) = (self.call, format!("toolu_{}", self.call));
        let input = json!({"path": format!("src/module_{call}/file.rs")});
        let blocks = json!([
            {"type": "text", "text": "It reads the file first. ".repeat(20)},
            {"type": "tool_use", "id": id, "name": "read_file", "input": input},
        ]);
        self.add(agent, "model_requested", &json!({"step": 1, "attempt": 1}))?;
        self.add(
            agent,
            "assistant_message",
            &json!({"message_id": "i", "model": "m", "content": blocks, "stop_reason": "tool_use",
            "usage": usage()}),
        )?;
        self.add(
            agent,
            "tool_call_started",
            &json!({"call": call, "tool_use": id, "name": "read_file", "kind": "read", "input": input}),
        )?;
        let line = format!("    let number = {call}; // \"quoted\"\n");
        let content = line.repeat(RESULT / line.len());
        self.add(
            agent,
            "tool_call_finished",
            &json!({"call": call, "tool_use": id, "status": "completed", "content": content,
            "duration_ms": 1}),
        )
    }

    /// Appends all events of a sub-agent.
    fn sub_agent(&mut self, agent: &str) -> Result<(), BenchError> {
        let reach = json!({"host": false, "lan": false, "link_local": false, "metadata": false});
        self.add(
            "1",
            "sub_agent_spawned",
            &json!({"agent": agent, "call": 1, "task": "look around", "model": "m", "write": [],
            "net": "off", "reach": reach, "rights_digest": "r"}),
        )?;
        for _ in 0..STEPS {
            self.step(agent)?;
        }
        self.add(
            "1",
            "sub_agent_result",
            &json!({"agent": agent, "call": 1, "status": "done", "denials": 0, "steps": STEPS,
            "usage": usage(), "duration_ms": 1, "text": "It looked around."}),
        )
    }
}

/// Returns an event of this name and content, parsed as from a log.
pub(super) fn event_kind(name: &str, data: &Value) -> Result<EventKind, BenchError> {
    let line = json!({"v": SCHEMA, "id": 1, "time_ms": 0, "session": "bench", "agent": "1", "observed_by": "supervisor", "type": name, "data": data});
    Ok(SessionEvent::from_json(line.to_string().as_bytes())?.kind)
}
