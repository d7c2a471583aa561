//! Benchmarks of sub-agents with the whole program: how many finish, how they delay each other, and their memory.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use model::recording::{RecordedRequest, Reply};
use model::replay::{ReplayServer, Script, sse};

use super::stats::{BenchReport, Measurement};
use super::transcript::{BYTES_SAID, BenchProcess, print};
use super::{BenchError, BenchSetup, memory, requests};

/// Number of sub-agents that one turn starts.
const MANY: usize = 200;

// Number of sub-agents that work at the same time while their steps are timed, and number of steps of each.
const TOGETHER: usize = 8;
const STEPS: usize = 50;

// Number of sub-agents with a context of 50,000 tokens, and number of turns in which their contexts grow.
const REMEMBERING: usize = 16;
const TURNS: usize = 25;

/// Time after which a worker is idle. A worker frees pages after a tenth of a second without work.
const REST: Duration = Duration::from_millis(600);

/// Beginning of a sub-agent's task. The sub-agent's number follows.
const TASK: &str = "sub-task ";

/// Measures a run with 200 sub-agents that work at the same time. One turn starts them all, and each gives two replies.
pub(super) fn many(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let server = model(MANY, 1, requests::command, || Reply::sse(requests::last_words()))?;
    let began = Instant::now();
    requests::finish(&mut command_line(setup, &server, MANY)?)?;
    let took = began.elapsed();
    let last = server.requests().pop().ok_or("no request came")?;
    let done = text(&last).matches(": done").count();
    if done < MANY {
        return Err(format!("{done} of {MANY} sub-agents are done").into());
    }
    let each = took / u32::try_from(MANY)?;
    let rows = vec![
        Measurement::of_times("200 sub-agents, the whole run", &[took]),
        Measurement::of_times("each of them", &[each]),
    ];
    Ok(BenchReport { rows, ..BenchReport::default() })
}

/// Measures the time from a reply to the sub-agent's next request: of a single sub-agent, and of one of eight at once.
pub(super) fn steps(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let rows = vec![
        Measurement::of_times("answer → next request, one sub-agent", &gaps(setup, 1)?),
        Measurement::of_times("the same, eight at work", &gaps(setup, TOGETHER)?),
    ];
    let ratio = rows[1].median / rows[0].median;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("eight at work / one (medians)", ratio, 3.0);
    Ok(report)
}

fn gaps(setup: &BenchSetup, agents: usize) -> Result<Vec<Duration>, BenchError> {
    let server = model(agents, STEPS, requests::command, || Reply::sse(requests::last_words()))?;
    requests::finish(&mut command_line(setup, &server, agents)?)?;
    let mut received = vec![Vec::new(); agents];
    for request in server.requests() {
        if let Some(times) = number(&text(&request)).and_then(|number| received.get_mut(number)) {
            times.push(request.received);
        }
    }
    if received.iter().any(|times| times.len() <= STEPS) {
        return Err(format!("not every sub-agent made {STEPS} steps").into());
    }
    // The first step waits for the worker.
    let pairs = received.iter().flat_map(|times| times[1..].windows(2));
    Ok(pairs.map(|pair| pair[1].duration_since(pair[0])).collect())
}

/// Measures the memory for a sub-agent with 50,000 tokens of context: in the supervisor, its worker and their brokers.
pub(super) fn remembering(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let (one, _) = settled(setup, 1)?;
    let (all, families) = settled(setup, REMEMBERING)?;
    let more = u32::try_from(REMEMBERING - 1)?;
    let own = (all - one) * 1024.0 / f64::from(more);
    let rows = vec![
        Measurement::of("a sub-agent with 50,000 tokens, in the supervisor", "KiB", &[own]),
        Measurement::of("its worker with brokers, PSS", "KiB", &families),
    ];
    let each = (own + rows[1].median) / 1024.0;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("a sub-agent with 50,000 tokens, all its processes, MiB", each, 3.0);
    Ok(report)
}

fn settled(setup: &BenchSetup, agents: usize) -> Result<(f64, Vec<f64>), BenchError> {
    let words = "say ".repeat(BYTES_SAID / 4);
    let step = move |step| print(step, BYTES_SAID, Some(&words));
    let silence = || Reply::sse(sse::event("ping", &serde_json::json!({}))).then_silence();
    let server = model(agents, TURNS, step, silence)?;
    let command = command_line(setup, &server, agents)?;
    let mut supervisor = BenchProcess::of(command)?;
    supervisor.until_asked(&server, 1 + agents * (TURNS + 1))?;
    std::thread::sleep(REST);
    let workers = workers_below(supervisor.id())?;
    let families: Vec<_> =
        workers.into_iter().map(|pid| memory::family(pid, supervisor.id())).collect::<Result<_, _>>()?;
    if families.len() <= agents {
        return Err(format!("{} workers of {agents} sub-agents live", families.len()).into());
    }
    Ok((supervisor.resident("VmRSS:")?, families))
}

/// Returns the pids of the workers of a session and of its sub-agents.
fn workers_below(supervisor: u32) -> Result<Vec<u32>, BenchError> {
    let is_below = |mut pid: u32| {
        while pid > 1 && pid != supervisor {
            pid = memory::parent(pid).unwrap_or_default();
        }
        pid == supervisor
    };
    let is_worker = |pid: u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("bailiwick-worke"))
    };
    let all = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(all.filter(|pid| is_worker(*pid) && is_below(*pid)).collect())
}

/// Starts a model server for a first agent that starts `agents` sub-agents at once, each of which makes `steps` steps.
fn model(
    agents: usize,
    steps: usize,
    step: impl Fn(usize) -> String + Send + 'static,
    last: impl Fn() -> Reply + Send + 'static,
) -> std::io::Result<ReplayServer> {
    let answer = move |_: usize, request: &RecordedRequest| {
        let text = text(request);
        let results = text.matches("\"tool_result\"").count();
        Some(match number(&text) {
            None if results == 0 => Reply::sse(delegation(agents)),
            None => Reply::sse(requests::last_words()),
            Some(_) if results < steps => Reply::sse(step(results)),
            Some(_) => last(),
        })
    };
    ReplayServer::start_checked(Script::new(), Box::new(answer))
}

/// Returns the number of the sub-agent that sends the request; `None` if the first agent sends it.
fn number(request: &str) -> Option<usize> {
    if request.contains("\"spawn_agent\"") {
        return None;
    }
    let (_, rest) = request.split_once(TASK)?;
    let end = rest.find(|character: char| !character.is_ascii_digit())?;
    rest.get(..end)?.parse().ok()
}

fn text(request: &RecordedRequest) -> String {
    String::from_utf8_lossy(&request.body).into_owned()
}

fn delegation(agents: usize) -> String {
    let call = |number: usize| {
        let input = serde_json::json!({ "task": format!("{TASK}{number}") });
        sse::Block::tool_use(format!("toolu_{number}"), "spawn_agent", input.to_string())
    };
    let calls: Vec<_> = (0..agents).map(call).collect();
    sse::message(&calls, "tool_use", sse::Usage::default())
}

/// Returns `bailiwick exec` with settings that let `agents` sub-agents work at the same time.
fn command_line(setup: &BenchSetup, server: &ReplayServer, agents: usize) -> Result<Command, BenchError> {
    let mut command = requests::command_line(setup, server);
    command.env("BAILIWICK_HOME", settings(setup, agents)?);
    Ok(command)
}

/// Writes the settings of the run into a new home directory. Returns the directory's path.
fn settings(setup: &BenchSetup, agents: usize) -> Result<PathBuf, BenchError> {
    let home = setup.sandbox().temp.path().join(format!("home-of-{agents}"));
    let directory = home.join("config");
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let file = directory.join("config.toml");
    fs::write(&file, format!("[agents]\ndepth = 1\nat_once = {agents}\nper_turn = {agents}\n"))?;
    fs::set_permissions(&file, Permissions::from_mode(0o600))?;
    Ok(home)
}
