//! Benchmarks of the whole program with a scripted model on loopback: the time until the first request, and the cost of
//! a token.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::replay::{ReplayServer, Script, sse};
use nix::sys::resource::UsageWho;

use super::stats::{BenchReport, Measurement, cpu_time, interleaved, timed};
use super::{BenchError, BenchSetup};

const RUNS: usize = 20;
const STEPS: usize = 200;
const TOKENS: u32 = 20_000;
const FAST_TOKENS: usize = 10_000;

/// Measures the time from the start of the process to the first model request.
pub(super) fn first_request(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let mut samples = Vec::new();
    for _ in 0..=RUNS {
        let server = ReplayServer::start(Script::new().reply(last_words()))?;
        let began = Instant::now();
        exec(setup, &server)?;
        let requests = server.requests();
        samples.push(requests.first().ok_or("no request came")?.received.duration_since(began));
    }
    let mut report = BenchReport {
        rows: vec![Measurement::of_times("process start → first request", &samples[1..])],
        ..BenchReport::default()
    };
    let p10 = report.rows[0].p10 / 1000.0;
    report.absolute("process start → first request, ms", p10, 30.0);
    Ok(report)
}

/// Script in sh that acts as an MCP server with one tool.
const SERVER: &str = r#"while read -r line; do
    id=${line##*\"id\":} id=${id%%[,\}]*}
    case $line in
        *'"initialize"'*) answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) answer='"result":{"tools":[{"name":"t","description":"Does it.","inputSchema":{"type":"object"}}]}' ;;
        *'"id"'*) answer='"error":{"code":-32601,"message":"no such method"}' ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done"#;

/// Measures the time to the first model request with three MCP servers, next to none. The request waits for no server.
pub(super) fn with_servers(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    for name in NAMES {
        let mut add = of_bailiwick(setup);
        finish(add.args(["mcp", "add", name, "--yes", "--", "/bin/sh", "-c", SERVER]))?;
    }
    let first = |names: &[&str]| {
        let server = ReplayServer::start(Script::new().reply(last_words()))?;
        let mut command = command_line(setup, &server);
        let began = Instant::now();
        finish(command.args(names.iter().flat_map(|name| ["--mcp", name])))?;
        let requests = server.requests();
        Ok(requests.first().ok_or("no request came")?.received.duration_since(began))
    };
    let rows = interleaved(
        RUNS,
        &mut [
            ("process start → first request, no server", Box::new(|| first(&[]))),
            ("process start → first request, three servers", Box::new(|| first(&NAMES))),
        ],
    )?;
    let delay = (rows[1].p10 - rows[0].p10) / 1000.0;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("first request with three MCP servers beyond one with none, ms", delay, 20.0);
    Ok(report)
}

/// Measures the time from the last byte of a reply, which calls the command `true`, to the next request. Includes the
/// time of the model server.
pub(super) fn step_gap(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let server = ReplayServer::start(
        (0..STEPS).fold(Script::new(), |script, step| script.reply(command(step))).reply(last_words()),
    )?;
    exec(setup, &server)?;
    let received: Vec<_> = server.requests().iter().map(|request| request.received).collect();
    let gaps: Vec<Duration> = received.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    if gaps.len() < STEPS {
        return Err(format!("{} steps of {STEPS} were made", gaps.len()).into());
    }
    let rows = vec![
        Measurement::of_times("answer → next request, all 200 steps", &gaps),
        Measurement::of_times("the first 20 steps", &gaps[1..21]),
        Measurement::of_times("the last 20 steps", &gaps[STEPS - 20..]),
    ];
    let mut report = BenchReport { rows, ..BenchReport::default() };
    let p10 = report.rows[0].p10 / 1000.0;
    report.absolute("answer → next request, ms", p10, 5.0);
    let growth = report.rows[2].median / report.rows[1].median;
    report.absolute("last 20 steps / first 20 steps (medians)", growth, 1.2);
    Ok(report)
}

/// Measures the CPU time of the whole process tree per streamed token, log included: the difference between a run with
/// many tokens and one without.
pub(super) fn streamed_token(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let reply = words(TOKENS as usize);
    let mut samples = Vec::new();
    for _ in 0..10 {
        let idle = cpu(setup, last_words())?;
        let busy = cpu(setup, reply.clone())?;
        samples.push(busy.saturating_sub(idle).as_secs_f64() * 1e6 / f64::from(TOKENS));
    }
    let mut report = BenchReport {
        rows: vec![Measurement::of("CPU per streamed token, exec --output text", "µs", &samples)],
        ..BenchReport::default()
    };
    let median = report.rows[0].median;
    report.absolute("CPU per streamed token, µs", median, 15.0);
    Ok(report)
}

/// Measures a run with a reply of 10,000 tokens at full speed, from the start of the process to its end.
pub(super) fn fast_stream(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let reply = words(FAST_TOKENS);
    let once = |reply: &str| {
        let server = ReplayServer::start(Script::new().reply(reply.to_owned()))?;
        timed(|| exec(setup, &server))
    };
    let rows = interleaved(
        RUNS,
        &mut [
            ("exec with a reply of 10,000 tokens", Box::new(|| once(&reply))),
            ("exec with a reply of one word", Box::new(|| once(&last_words()))),
        ],
    )?;
    let seconds = rows[0].median / 1e6;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("10,000 tokens at full speed, s (median)", seconds, 0.3);
    Ok(report)
}

/// Returns a reply of `count` words, each in a delta of its own.
fn words(count: usize) -> String {
    sse::message(&[sse::Block::text("word ".repeat(count))], "end_turn", sse::Usage::default())
}

fn cpu(setup: &BenchSetup, reply: String) -> Result<Duration, BenchError> {
    let server = ReplayServer::start(Script::new().reply(reply))?;
    let before = cpu_time(UsageWho::RUSAGE_CHILDREN)?;
    exec(setup, &server)?;
    Ok(cpu_time(UsageWho::RUSAGE_CHILDREN)?.saturating_sub(before))
}

pub(super) fn last_words() -> String {
    sse::message(&[sse::Block::text("Done.")], "end_turn", sse::Usage::default())
}

/// Returns a reply that calls the command `true`. The command differs from step to step, because Bailiwick stops an
/// agent that repeats a call.
pub(super) fn command(step: usize) -> String {
    let input = format!(r#"{{"command":"true {step}"}}"#);
    let call = sse::Block::tool_use(format!("toolu_{step}"), "shell_exec", input);
    sse::message(&[call], "tool_use", sse::Usage::default())
}

/// Returns the command `bailiwick exec` with `server` as the model server.
pub(super) fn command_line(setup: &BenchSetup, server: &ReplayServer) -> Command {
    let mut command = of_bailiwick(setup);
    command
        .args(["exec", "--mode", "auto", "--base-url", &server.base_url(), "-C"])
        .arg(setup.sandbox().policy.project.as_path())
        .arg("measure")
        .env("ANTHROPIC_API_KEY", "bench");
    command
}

/// Returns the command `bailiwick` with a home directory of its own.
fn of_bailiwick(setup: &BenchSetup) -> Command {
    let mut command = Command::new(setup.program());
    command
        .env("BAILIWICK_HOME", setup.sandbox().temp.path().join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

pub(super) fn exec(setup: &BenchSetup, server: &ReplayServer) -> Result<(), BenchError> {
    finish(&mut command_line(setup, server))
}

pub(super) fn finish(command: &mut Command) -> Result<(), BenchError> {
    let output = command.stderr(Stdio::piped()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("exec ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
