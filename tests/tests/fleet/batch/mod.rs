//! Tests `bailiwick batch`: every task ends exactly once, whenever the batch is killed, and nothing is left behind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

mod contained;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::random::Random;
use tests::replies::{answers_with_the_tasks_name as model, done};
use tests::world::KEY;
use tests::{Finished, User, World, marked, wait_until};

/// Creates a world whose project is a repository, and returns the commit at which tasks begin. One commit follows it.
fn repository() -> (World, String) {
    let world = World::new(User::Myself);
    world.file("kept.txt", "kept\n");
    world.commit();
    let base = git(&world, &["rev-parse", "HEAD"]);
    world.file("solution.txt", "later\n");
    git(&world, &["add", "-A"]);
    git(&world, &["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "the fix"]);
    (world, base.trim().to_owned())
}

fn git(world: &World, arguments: &[&str]) -> String {
    let done = Finished::of(world.command("git").args(arguments).current_dir(world.project()));
    assert_eq!(done.code, 0, "git {arguments:?}: {}", done.stderr);
    done.stdout
}

fn tasks(world: &World, base: &str, count: usize) -> PathBuf {
    let task = |index| {
        let id = format!("t{index:03}");
        json!({"id": id, "prompt": format!("task {id}"), "repo": world.project(), "base_commit": base})
            .to_string()
    };
    let path = world.root().join("tasks.jsonl");
    fs::write(&path, (0..count).map(task).collect::<Vec<_>>().join("\n")).unwrap();
    path
}

fn batch(world: &World, server: &ReplayServer, tasks: &Path, arguments: &[&str]) -> Command {
    let mut command = world.bailiwick(["batch"]);
    command.arg(tasks).args(["--output", "out", "--model", "scripted", "--base-url", &server.base_url()]);
    command.args(arguments).env("ANTHROPIC_API_KEY", KEY);
    command
}

fn out(world: &World, name: &str) -> PathBuf {
    world.root().join("out").join(name)
}

fn state(world: &World, id: &str) -> Value {
    let text = fs::read(out(world, "instances").join(id).join("state.json"));
    text.map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap())
}

fn predictions(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(out(world, "predictions/predictions.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks that each task is done, and that each has exactly one prediction, which belongs to this task.
fn each_exactly_once(world: &World, count: usize) {
    let mut patches = BTreeMap::new();
    for prediction in predictions(world) {
        let id = prediction["instance_id"].as_str().unwrap().to_owned();
        assert_eq!(prediction["model_name_or_path"], "bailiwick/scripted");
        let patch = prediction["model_patch"].as_str().unwrap().to_owned();
        assert!(patch.contains(&format!("+{id}\n")), "{id}: {patch}");
        assert_eq!(patches.insert(id, patch), None, "a task has two predictions");
    }
    assert_eq!(patches.len(), count, "tasks are lost");
    let object: BTreeMap<String, Value> =
        serde_json::from_slice(&fs::read(out(world, "predictions/preds.json")).unwrap()).unwrap();
    assert_eq!(object.keys().collect::<Vec<_>>(), patches.keys().collect::<Vec<_>>());
    for id in patches.keys() {
        let state = state(world, id);
        assert_eq!((&state["status"], &state["steps"]), (&json!("done"), &json!(2)), "{state}");
        assert!(
            fs::read_to_string(out(world, "instances").join(id).join("session.jsonl")).unwrap().contains(id)
        );
    }
}

/// Checks that no process and no directory of a run is left.
fn nothing_is_left(world: &World) {
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
    let names: Vec<_> =
        fs::read_dir(out(world, "work")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
    assert!(world.temps().is_empty(), "{:?}", world.temps());
    let caches = fs::read_dir(world.own().join("cache/projects")).into_iter().flatten().count();
    assert_eq!(caches, 0, "caches of checkouts are left");
}

fn start(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap())
}

fn children(pid: Pid) -> Vec<Pid> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|number| Pid::from_raw(number.parse().unwrap())).collect()
}

#[test]
fn twenty_tasks_outlive_kills_of_the_batch_and_of_single_runs() {
    const TASKS: usize = 20;
    let (world, base) = repository();
    let server = model(Duration::from_millis(5));
    let tasks = tasks(&world, &base, TASKS);
    let seed = std::env::var("BAILIWICK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(28);
    let mut random = Random::new(seed);
    let (mut batches, mut runs) = (0, 0);
    let began = Instant::now();
    loop {
        let mut command = batch(&world, &server, &tasks, &["--jobs", "4"]);
        let errors = fs::File::create(world.root().join("stderr")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        let end = Instant::now() + Duration::from_millis(400 + random.below(2500));
        let mut ended = None;
        // The last batches are not killed, because otherwise none would ever end.
        let kills = batches + runs < 24;
        while ended.is_none() && (Instant::now() < end || !kills) {
            thread::sleep(Duration::from_millis(50 + random.below(100)));
            ended = child.try_wait().unwrap();
            let running = children(pid(&child));
            if kills && !running.is_empty() && random.below(6) == 0 {
                let one = running[usize::try_from(random.next()).unwrap() % running.len()];
                runs += usize::from(kill(one, Signal::SIGKILL).is_ok());
            }
        }
        if let Some(status) = ended {
            // A batch counts a task as failed after three killed runs. The next batch begins this task again.
            if status.code() == Some(0) {
                break;
            }
            let told = fs::read_to_string(world.root().join("stderr")).unwrap();
            // A child of the previous, killed batch had not executed a program yet, and still has the lock file open.
            if status.code() == Some(2) && told.contains("another batch") {
                continue;
            }
            assert_eq!(status.code(), Some(3), "seed {seed}: {told}");
            continue;
        }
        let signal = [Signal::SIGKILL, Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT][batches % 4];
        kill(pid(&child), signal).unwrap();
        let status = child.wait().unwrap();
        let codes = [None, None, Some(143), Some(130)];
        let is_expected = status.code() == codes[batches % 4] || matches!(status.code(), Some(0 | 3));
        assert!(is_expected, "seed {seed}: {signal}: {status}");
        batches += 1;
        assert!(began.elapsed() < Duration::from_mins(5), "seed {seed}");
    }
    eprintln!("{batches} batches and {runs} runs were killed, seed {seed}");
    assert!(batches > 2 && runs > 2, "{batches} and {runs} kills");
    each_exactly_once(&world, TASKS);
    // Nothing is left to do, and nothing is done.
    let asked = server.requests().len();
    let last = Finished::of(&mut batch(&world, &server, &tasks, &[]));
    assert_eq!(
        (last.code, last.stderr.contains("cannot remove")),
        (0, false),
        "seed {seed}: {}",
        last.stderr
    );
    assert_eq!(server.requests().len(), asked);
    each_exactly_once(&world, TASKS);
    nothing_is_left(&world);
}

#[test]
fn a_killed_batch_takes_its_runs_with_it() {
    let (world, base) = repository();
    let server = model(Duration::from_secs(30));
    let tasks = tasks(&world, &base, 3);
    let mut child = start(batch(&world, &server, &tasks, &["--jobs", "3"]));
    wait_until("three runs ask their model", || server.requests().len() == 3);
    assert_eq!(state(&world, "t000")["status"], "running");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn an_agent_sees_neither_later_commits_nor_what_others_found() {
    let (world, base) = repository();
    let tasks = tasks(&world, &base, 1);
    let gold = world.root().join("gold.parquet");
    fs::write(&gold, "the gold patch").unwrap();
    let look = format!(
        "git log --all --oneline | wc -l; git cat-file -t {}; cat {} {} {}/*; ls {} ; ls",
        git(&world, &["rev-parse", "HEAD"]).trim(),
        tasks.display(),
        gold.display(),
        out(&world, "predictions").display(),
        world.project().display(),
    );
    let server = tests::replies::model_of([tests::replies::shell(&look), done()]);
    let finished = Finished::of(&mut batch(&world, &server, &tasks, &[]));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let seen = tests::world::tool_results(&server, 1)[0]["content"].to_string();
    assert!(seen.contains("1\\n") && seen.contains("kept.txt"), "{seen}");
    assert!(
        ["solution.txt", "commit\\n", "prompt", "gold patch"].iter().all(|told| !seen.contains(told)),
        "{seen}"
    );
    assert_eq!(seen.matches("Permission denied").count(), 4, "{seen}");
}

#[test]
fn a_batch_goes_on_only_with_what_it_began_and_alone() {
    let (world, base) = repository();
    let server = model(Duration::from_secs(30));
    let file = tasks(&world, &base, 1);
    let mut first = start(batch(&world, &server, &file, &[]));
    wait_until("the run asks its model", || !server.requests().is_empty());
    let second = Finished::of(&mut batch(&world, &server, &file, &[]));
    assert_eq!(second.code, 2);
    assert!(second.stderr.contains("another batch is writing to this directory"), "{}", second.stderr);
    kill(pid(&first), Signal::SIGINT).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert_eq!(state(&world, "t000")["status"], "interrupted");
    for (arguments, told) in
        [(["--name", "other"], "a different name of the model"), (["--mode", "deny"], "a different mode")]
    {
        let finished = Finished::of(&mut batch(&world, &server, &file, &arguments));
        assert_eq!(finished.code, 2);
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }
    tasks(&world, &base, 2);
    let finished = Finished::of(&mut batch(&world, &server, &file, &[]));
    assert!(finished.stderr.contains("a different file of tasks"), "{}", finished.stderr);
    nothing_is_left(&world);
}

#[test]
fn failures_in_a_row_stop_a_batch_and_the_report_says_why() {
    let (world, _) = repository();
    let tasks = tasks(&world, "0123456789", 4);
    let server = model(Duration::ZERO);
    let finished =
        Finished::of(&mut batch(&world, &server, &tasks, &["--max-failures", "2", "--jobs", "1", "--json"]));
    assert_eq!(finished.code, 3);
    assert!(
        finished.stderr.contains("2 tasks were not started, after 2 failures in a row"),
        "{}",
        finished.stderr
    );
    let last: Value = serde_json::from_str(finished.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["data"]["statuses"], json!({"failed": 2, "queued": 2}));
    let report =
        Finished::of(world.bailiwick(["batch", "report", "out", "--json"]).current_dir(world.root()));
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["statuses"], json!({"failed": 2, "queued": 2}));
    let task = &report["tasks"][0];
    assert_eq!((&task["stage"], &task["fault"]), (&json!("checkout"), &json!("scaffold")));
    assert!(task["message"].as_str().unwrap().contains("cannot make the checkout"), "{task}");
    nothing_is_left(&world);
}

/// Tests a run whose settings are rejected: it reports the reason, and is not repeated.
#[test]
fn a_run_that_cannot_begin_is_begun_once() {
    let (world, base) = repository();
    let server = model(Duration::ZERO);
    let tasks = tasks(&world, &base, 1);
    let done = Finished::of(&mut batch(&world, &server, &tasks, &["--max-usd", "1"]));
    assert_eq!(done.code, 3, "{}", done.stderr);
    let state = state(&world, "t000");
    assert_eq!((&state["status"], &state["attempt"]), (&json!("failed"), &json!(1)), "{state}");
    let message = state["message"].as_str().unwrap();
    let cause = "no result: exit status 2: bailiwick: the cost of \"scripted\" cannot be limited: its price is not known; hint: ";
    assert!(message.starts_with(cause), "{message}");
    assert!(server.requests().is_empty());
}

#[test]
fn the_minimal_profile_has_one_tool_and_a_short_prompt() {
    let (world, base) = repository();
    let tasks = tasks(&world, &base, 1);
    let server = tests::replies::model_of([tests::replies::shell("echo t000 > answer"), done()]);
    let finished = Finished::of(&mut batch(&world, &server, &tasks, &["--profile", "minimal"]));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    let tools: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(tools, ["shell_exec"]);
    assert!(body["system"].to_string().len() < 2000, "{}", body["system"]);
    each_exactly_once(&world, 1);
    let trajectory = out(&world, "instances/t000/t000.traj.json");
    let trajectory: Value = serde_json::from_slice(&fs::read(trajectory).unwrap()).unwrap();
    assert_eq!(trajectory["info"]["exit_status"], "Submitted");
    let roles: Vec<_> =
        trajectory["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles[roles.len() - 3..], ["assistant", "tool", "assistant"]);
    let other = Finished::of(&mut batch(&world, &server, &tasks, &[]));
    assert!(other.stderr.contains("a different profile"), "{}", other.stderr);
}

/// Measures the time that is lost between runs, and the memory of the batch. `just soak` runs five hundred tasks.
#[test]
fn scheduling_takes_little_time_and_little_memory() {
    let count = std::env::var("BAILIWICK_BATCH").ok().and_then(|count| count.parse().ok()).unwrap_or(24);
    let (world, base) = repository();
    let server = model(Duration::from_millis(1));
    let tasks = tasks(&world, &base, count);
    let began = Instant::now();
    let mut child = start(batch(&world, &server, &tasks, &["--jobs", "4"]));
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(resident_kib(child.id()));
        thread::sleep(Duration::from_millis(20));
    }
    let elapsed = began.elapsed();
    let report = Finished::of(world.bailiwick(["batch", "report", "out"]).current_dir(world.root()));
    eprintln!("{}", report.stdout);
    each_exactly_once(&world, count);
    nothing_is_left(&world);
    let total = |index: usize| state(&world, &format!("t{index:03}"))["total_ms"].as_u64().unwrap();
    let busy: u64 = (0..count).map(total).sum();
    let ideal = Duration::from_millis(busy) / 4;
    let overhead = 1.0 - ideal.as_secs_f64() / elapsed.as_secs_f64();
    eprintln!("{count} tasks in {elapsed:.1?}: overhead {:.1} %, {most} KiB", overhead * 100.0);
    assert!(most < 100 << 10, "{most} KiB");
    // A few tasks do not end at the same time, and their start is not a part of the scheduling.
    assert!(count < 200 || overhead <= 0.05, "{overhead}");
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
