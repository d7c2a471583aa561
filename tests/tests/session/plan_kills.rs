//! Tests `bailiwick plan execute` that is killed: steps that the log calls finished stay finished in later executions.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::replay::{RecordedRequest, ReplayServer, Reply, Script};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::random::Random;
use tests::replies::{calls, done, model_of, serve_checked, shell};
use tests::{Finished, User, World, wait_until};

const WORDS: [&str; 3] = ["two", "three", "four"];

/// Words that the commands of the steps write, and the word of the sub-agent's command.
const WRITTEN: [&str; 4] = ["two", "three", "four", "counted"];

const PLAN: &str = "# Three words\n\n## Steps\n\n### 1. Write two\n\nAcceptance:\n- `grep -q two a.txt`\n\n### 2. Write three\n\n\
    Acceptance:\n- `grep -q three a.txt`\n\n### 3. Write four\n\nAcceptance:\n- `grep -q four a.txt`\n";

const COUNTS: &str = "wc -w a.txt; echo counted >> b.txt";

/// Command of a step that reports its start, and then waits.
const WAIT: &str = "touch waits; sleep 600";

/// Starts the model server of an executor that does the steps one after the other, the second with a sub-agent. In the
/// step `waits_in`, it waits for ever.
fn executor(waits_in: Option<usize>) -> ReplayServer {
    let check = move |_: usize, request: &RecordedRequest| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let task = messages[0].to_string();
        let said = messages.iter().filter(|message| message["role"] == "assistant").count();
        let text = if task.contains("Count the words") {
            if said == 0 {
                calls(&[("shell_exec", json!({"command": COUNTS, "access": "write"}))])
            } else {
                done()
            }
        } else {
            let begins =
                task.rsplit_once("begin with step ").map_or(1, |(_, rest)| rest[..1].parse().unwrap());
            let number = begins + said;
            WORDS.get(number - 1).map_or_else(done, |word| step(number, word, waits_in == Some(number)))
        };
        Some(Reply::sse("").pieces([(Duration::from_millis(2), text.into())]))
    };
    serve_checked(Script::new(), Box::new(check))
}

fn step(number: usize, word: &str, waits: bool) -> String {
    let command = if waits { WAIT.to_owned() } else { format!("echo {word} >> a.txt; sleep 0.02") };
    let update = |status: &str| ("update_step", json!({"step": number, "status": status}));
    let help = ("spawn_agent", json!({"task": "Count the words", "access": "write"}));
    let command = ("shell_exec", json!({ "command": command }));
    let mut all = vec![update("in_progress"), command, update("completed")];
    if number == 2 && !waits {
        all.insert(1, help);
    }
    calls(&all)
}

struct PlannedWorld(World);

impl PlannedWorld {
    /// Creates a world with a project for which the plan was made and approved.
    fn new() -> Self {
        let world = World::new(User::Myself);
        world.file("a.txt", "one\n");
        world.file("b.txt", "");
        let writes = model_of([calls(&[("write_plan", json!({ "markdown": PLAN }))]), done()]);
        let new = Self(world);
        let mut command = new.command(&writes, &["exec", "--activity", "plan", "--mode", "deny", "plan it"]);
        Finished::of(&mut command);
        new.approve();
        new
    }

    fn command(&self, server: &ReplayServer, arguments: &[&str]) -> std::process::Command {
        let mut command = self.0.bailiwick(arguments);
        command.args(["--base-url", &server.base_url(), "--model", "scripted", "-C"]).arg(self.0.project());
        command.env("ANTHROPIC_API_KEY", "no-key-is-needed");
        command
    }

    fn plan(&self, arguments: &[&str]) -> Finished {
        let (command, rest) = arguments.split_first().unwrap();
        let mut command = self.0.bailiwick(["plan", command, "-C"]);
        Finished::of(command.arg(self.0.project()).args(rest)).expect(0)
    }

    fn approve(&self) {
        let shown: Value = serde_json::from_str(&self.plan(&["show", "--json"]).stdout).unwrap();
        self.plan(&["approve", "--digest", shown["digest"].as_str().unwrap()]);
    }

    fn listed(&self) -> Value {
        serde_json::from_str(&self.plan(&["list", "--json"]).stdout).unwrap()
    }

    fn start(&self, server: &ReplayServer, arguments: &[&str]) -> Child {
        let mut command = self.command(server, arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Returns the number of times that each of [`WRITTEN`] was written.
    fn written(&self) -> [usize; 4] {
        let text = [self.0.read("a.txt"), self.0.read("b.txt")].concat();
        WRITTEN.map(|word| text.lines().filter(|line| *line == word).count())
    }

    /// Returns the events of all logs except those whose file names are in `old`.
    fn events(&self, old: &BTreeSet<std::ffi::OsString>) -> Vec<Value> {
        let entries = fs::read_dir(self.0.own().join("state/sessions")).unwrap().map(Result::unwrap);
        let new = entries.filter(|entry| {
            !old.contains(&entry.file_name()) && entry.path().extension().is_some_and(|end| end == "jsonl")
        });
        let texts: Vec<_> = new.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
        texts
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Returns the steps that all logs, except those whose file names are in `old`, call finished.
    fn completed(&self, old: &BTreeSet<std::ffi::OsString>) -> BTreeSet<u64> {
        let events = self.events(old).into_iter();
        let steps =
            events.filter(|event| event["type"] == "plan_step_status" && event["data"]["to"] == "completed");
        steps.map(|event| event["data"]["step"].as_u64().unwrap()).collect()
    }

    /// Checks that each command ran at least as often as the logs say that it succeeded, and at most as often as they
    /// say that it started.
    fn hold_to_account(&self, written: [usize; 4]) {
        let (mut began, mut ended) = ([0; 4], [0; 4]);
        let mut open = BTreeMap::new();
        for event in self.events(&BTreeSet::new()) {
            let data = &event["data"];
            let call = format!("{} {} {}", event["session"], event["agent"], data["call"]);
            if event["type"] == "tool_call_started" {
                let command = data["input"]["command"].as_str().unwrap_or_default();
                let at = WRITTEN.iter().position(|word| command.contains(&format!("echo {word} >>")));
                let Some(at) = at else { continue };
                began[at] += 1;
                assert!(open.insert(call, at).is_none(), "{event} began twice");
            } else if event["type"] == "tool_call_finished" {
                let Some(at) = open.remove(&call) else { continue };
                ended[at] += usize::from(data["status"] == "completed");
            }
        }
        for at in 0..4 {
            let (least, ran, most) = (ended[at], written[at], began[at]);
            assert!(least <= ran && ran <= most, "{}: {least} ended, {ran} ran, {most} began", WRITTEN[at]);
        }
    }

    fn logs(&self) -> BTreeSet<std::ffi::OsString> {
        let entries = fs::read_dir(self.0.own().join("state/sessions")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }
}

fn end(child: &mut Child) {
    let _ = kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL);
    child.wait().unwrap();
}

#[test]
fn an_execution_that_was_killed_goes_on_at_its_step_however_often() {
    let planned = PlannedWorld::new();
    // Killed in the second step, then, in another session, in the third.
    for (waits_in, done) in [(2, 1), (3, 2)] {
        let server = executor(Some(waits_in));
        let mut child = planned.start(&server, &["plan", "execute"]);
        wait_until("the step waits", || planned.0.project().join("waits").exists());
        let listed = planned.plan(&["list"]).stdout;
        assert!(listed.contains("being executed by session"), "{listed}");
        let other = Finished::of(&mut planned.command(&server, &["plan", "execute"])).expect(2);
        assert!(other.stderr.contains("is being executed by session"), "{}", other.stderr);
        end(&mut child);
        fs::remove_file(planned.0.project().join("waits")).unwrap();
        let listed = planned.listed();
        assert_eq!((&listed["fate"], &listed["done"]), (&json!("unfinished"), &json!(done)), "{listed}");
    }
    // The session of the second execution continues. Of the first one, it knows only the number of finished steps.
    let server = executor(None);
    let flags = ["exec", "--mode", "auto", "--activity", "plan", "--approve-plan", "-c", "go on"];
    Finished::of(&mut planned.command(&server, &flags)).expect(0);
    assert_eq!(planned.0.read("a.txt"), "one\ntwo\nthree\nfour\n");
    assert_eq!(planned.listed()["fate"], "executed");
    // Without the log, no finished step is known.
    planned.approve();
    let server = executor(Some(2));
    let mut child = planned.start(&server, &["plan", "execute"]);
    wait_until("the step waits", || planned.0.project().join("waits").exists());
    end(&mut child);
    for log in planned.logs() {
        fs::remove_file(planned.0.own().join("state/sessions").join(log)).unwrap();
    }
    let refused = Finished::of(&mut planned.command(&server, &["plan", "execute"])).expect(2);
    assert!(
        refused.stderr.contains("is missing") && refused.stderr.contains("--all-steps"),
        "{}",
        refused.stderr
    );
    Finished::of(&mut planned.command(&executor(None), &["plan", "execute", "--all-steps"])).expect(0);
}

/// Tests that the limit of steps counts the replies of all agents.
#[test]
fn a_limit_of_steps_is_one_of_the_whole_run() {
    let planned = PlannedWorld::new();
    for (steps, word) in [("1", "two"), ("3", "three")] {
        let server = executor(None);
        let run =
            Finished::of(&mut planned.command(&server, &["plan", "execute", "--max-steps", steps])).expect(3);
        assert!(run.stderr.contains(&format!("the limit of {steps} steps is reached")), "{}", run.stderr);
        assert_eq!(server.requests().len().to_string(), steps, "{}", run.stderr);
        assert!(planned.0.read("a.txt").ends_with(&format!("{word}\n")));
    }
    let world = World::new(User::Myself);
    let loops = |_: usize, request: &RecordedRequest| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let said = messages.len();
        let is_sub_agent = messages[0].to_string().contains("Count for ever");
        let reply = if is_sub_agent {
            shell(&format!("echo {said}"))
        } else {
            calls(&[("spawn_agent", json!({"task": "Count for ever"}))])
        };
        Some(Reply::sse("").pieces([(Duration::from_millis(1), reply.into())]))
    };
    let server = serve_checked(Script::new(), Box::new(loops));
    let mut command = world.bailiwick(["exec", "--mode", "auto", "--max-steps", "12", "count"]);
    command.args(["--base-url", &server.base_url(), "--model", "scripted", "-C"]).arg(world.project());
    let run = Finished::of(command.env("ANTHROPIC_API_KEY", "no-key-is-needed")).expect(3);
    assert!(run.stderr.contains("the limit of 12 steps is reached"), "{}", run.stderr);
    assert_eq!(server.requests().len(), 12, "{}", run.stderr);
}

/// Kills executions at random moments: twenty times, or five hundred times with `just soak`.
#[test]
fn no_step_that_a_log_calls_finished_is_done_again() {
    let kills = std::env::var("BAILIWICK_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let mut random = Random::new(43);
    let planned = PlannedWorld::new();
    let server = executor(None);
    // A kill may come at any time of an execution, however fast the machine is, and a few come too late.
    let start = Instant::now();
    Finished::of(&mut planned.command(&server, &["plan", "execute"])).expect(0);
    let longest = u64::try_from(start.elapsed().as_millis()).unwrap() * 5 / 4;
    planned.approve();
    let (mut old, mut executed) = (planned.logs(), 0);
    for round in 0..kills {
        let before = planned.written();
        let completed = planned.completed(&old);
        let mut child = planned.start(&server, &["plan", "execute"]);
        sleep(Duration::from_millis(random.below(longest)));
        end(&mut child);
        let after = planned.written();
        let listed = planned.listed();
        for step in completed {
            let at = usize::try_from(step - 1).unwrap();
            assert_eq!(before[at], after[at], "round {round}: step {step} was done again");
            assert!(step != 2 || before[3] == after[3], "round {round}: its sub-agent's call ran again");
        }
        assert!(before.iter().zip(&after).all(|(before, after)| before <= after), "round {round}: lost");
        planned.hold_to_account(after);
        let completed = planned.completed(&old);
        let done = (1..=3).take_while(|step| completed.contains(step)).count();
        if listed["fate"] == "executed" {
            assert_eq!(done, 3, "round {round}: {listed}");
            executed += 1;
            old = planned.logs();
            planned.approve();
        } else {
            let begun = !listed["record"]["execution"].is_null();
            let (fate, told) = if begun { ("unfinished", json!(done)) } else { ("approved", Value::Null) };
            assert_eq!((&listed["fate"], &listed["done"]), (&json!(fate), &told), "round {round}: {listed}");
        }
    }
    eprintln!("{kills} kills, {executed} executions came to their end");
    Finished::of(&mut planned.command(&server, &["plan", "execute"])).expect(0);
    assert_eq!(planned.listed()["fate"], "executed");
    let written = planned.written();
    assert!(written.iter().all(|times| *times > 0), "every command ran: {written:?}");
    planned.hold_to_account(written);
}
