//! Benchmarks of the whole program late in a session: time and memory with a long transcript.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::replay::{ReplayServer, Reply, Script, sse};

use super::memory::pss;
use super::stats::{BenchReport, Measurement};
use super::{BenchError, BenchSetup, requests};

// Number of turns in a long history, and in a short one.
const LONG: usize = 200;
const SHORT: usize = 20;
const WINDOW: usize = 20;

/// Number of steps in a transcript of 200,000 tokens of four bytes. Half of each step is text of the model, half output
/// of a tool.
const TURNS: usize = 100;
pub(super) const BYTES_SAID: usize = 4000;

/// Maximum wait for the last request.
const PATIENCE: Duration = Duration::from_mins(2);

/// Measures the time from the last byte of a reply to the next request, after 20 steps and after 200. Each step has a
/// kilobyte of tool output.
pub(super) fn history(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let steps = LONG + WINDOW / 2;
    let script = (0..steps).fold(Script::new(), |script, step| script.reply(print(step, 1000, None)));
    let server = ReplayServer::start(script.reply(requests::last_words()))?;
    requests::exec(setup, &server)?;
    let received: Vec<_> = server.requests().iter().map(|request| request.received).collect();
    let gaps: Vec<Duration> = received.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    let around = |turn: usize| gaps.get(turn - WINDOW / 2..turn + WINDOW / 2);
    let (Some(short), Some(long)) = (around(SHORT), around(LONG)) else {
        return Err(format!("{} steps of {steps} were made", gaps.len()).into());
    };
    let rows = vec![
        Measurement::of_times("answer → next request, about turn 20", short),
        Measurement::of_times("the same, about turn 200", long),
    ];
    let growth = rows[1].p10 / rows[0].p10;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("turn 200 / turn 20 (p10)", growth, 1.2);
    Ok(report)
}

/// Measures the supervisor's resident memory with 200,000 tokens of transcript, while it waits for the next reply.
pub(super) fn memory(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let words = "say ".repeat(BYTES_SAID / 4);
    let script =
        (0..TURNS).fold(Script::new(), |script, step| script.reply(print(step, BYTES_SAID, Some(&words))));
    let silence = Reply::sse(sse::event("ping", &serde_json::json!({}))).then_silence();
    let server = ReplayServer::start(script.push(silence))?;
    let mut supervisor = BenchProcess::start(setup, &server)?;
    supervisor.until_asked(&server, TURNS + 1)?;
    let sent = server.requests().last().map_or(0, |request| request.body.len());
    if sent < TURNS * 2 * BYTES_SAID {
        return Err(format!("the last request has only {sent} bytes of transcript").into());
    }
    let rows = vec![
        Measurement::of("supervisor with 200,000 tokens, resident", "MiB", &[supervisor.resident("VmRSS:")?]),
        Measurement::of("its peak", "MiB", &[supervisor.resident("VmHWM:")?]),
    ];
    let value = rows[0].median;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("supervisor with 200,000 tokens, resident MiB", value, 25.0);
    Ok(report)
}

/// Measures the memory of a headless run of ten steps while it waits for the next reply: of the supervisor, and of all
/// processes.
pub(super) fn headless(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    const STEPS: usize = 10;
    let script = (0..STEPS).fold(Script::new(), |script, step| script.reply(print(step, 1000, None)));
    let silence = Reply::sse(sse::event("ping", &serde_json::json!({}))).then_silence();
    let server = ReplayServer::start(script.push(silence))?;
    let mut supervisor = BenchProcess::start(setup, &server)?;
    supervisor.until_asked(&server, STEPS + 1)?;
    let own = pss(supervisor.id())? / 1024.0;
    let mut all = own;
    for child in descendants(supervisor.id())? {
        all += pss(child)? / 1024.0;
    }
    let rows = vec![
        Measurement::of("supervisor after ten steps, PSS", "MiB", &[own]),
        Measurement::of("all processes of the run, PSS", "MiB", &[all]),
        Measurement::of("supervisor, peak resident", "MiB", &[supervisor.resident("VmHWM:")?]),
    ];
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("a headless run, PSS of all its processes in MiB", all, 20.0);
    Ok(report)
}

/// Returns the pids of all descendants of `pid` (`children` of each thread, `proc_pid_task(5)`).
fn descendants(pid: u32) -> Result<Vec<u32>, BenchError> {
    let mut found = Vec::new();
    let mut left = vec![pid];
    while let Some(pid) = left.pop() {
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let children = fs::read_to_string(task?.path().join("children"))?;
            let children = children.split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>()?;
            found.extend(&children);
            left.extend(children);
        }
    }
    Ok(found)
}

/// Returns a reply that says `words`, if any, and calls a command whose shell prints `bytes` bytes by a builtin.
pub(super) fn print(step: usize, bytes: usize, words: Option<&str>) -> String {
    let command = format!(r#"{{"command":"printf '%0{bytes}d' {step}"}}"#);
    let call = sse::Block::tool_use(format!("toolu_{step}"), "shell_exec", command);
    let said = words.map(sse::Block::text);
    let blocks: Vec<_> = said.into_iter().chain([call]).collect();
    sse::message(&blocks, "tool_use", sse::Usage::default())
}

/// Process of `bailiwick exec`. Dropping this value ends the process.
pub(super) struct BenchProcess(Child);

impl BenchProcess {
    fn start(setup: &BenchSetup, server: &ReplayServer) -> Result<Self, BenchError> {
        Self::of(requests::command_line(setup, server))
    }

    pub(super) fn of(mut command: Command) -> Result<Self, BenchError> {
        Ok(Self(command.stderr(Stdio::null()).spawn()?))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until the server has received this number of requests.
    pub(super) fn until_asked(&mut self, server: &ReplayServer, requests: usize) -> Result<(), BenchError> {
        let began = Instant::now();
        while server.requests().len() < requests {
            if let Some(status) = self.0.try_wait()? {
                return Err(format!("exec ended early with {status}").into());
            }
            if began.elapsed() > PATIENCE {
                return Err("the transcript did not get long enough in time".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns the size with this name in the status file of the process, in MiB (`proc_pid_status(5)`).
    pub(super) fn resident(&self, name: &str) -> Result<f64, BenchError> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let size = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        Ok(size.ok_or("no such size in status")?.parse::<f64>()? / 1024.0)
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
