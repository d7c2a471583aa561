//! Tests a batch in shards, as on clusters: the scripts of `packaging/cluster`, and the merging of results.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::answers_with_the_tasks_name;
use tests::world::KEY;
use tests::{Finished, Programs, User, World, skip};

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/cluster").join(name)
}

/// Creates a world with `count` tasks. Each task copies the project.
fn with_tasks(count: usize) -> (World, ReplayServer) {
    let world = World::new(User::Myself);
    world.file("kept.txt", "kept\n");
    world.commit();
    let task = |index| {
        let id = format!("t{index:03}");
        json!({"id": id, "prompt": format!("task {id}"), "directory": world.project()}).to_string()
    };
    fs::write(world.root().join("tasks.jsonl"), (0..count).map(task).collect::<Vec<_>>().join("\n")).unwrap();
    (world, answers_with_the_tasks_name(Duration::ZERO))
}

fn path() -> String {
    format!("{}:{}", Programs::get().directory().display(), std::env::var("PATH").unwrap())
}

/// Returns a command that runs a script of `packaging/cluster` in the directory of the tasks.
fn script(world: &World, server: &ReplayServer, arguments: &[&str]) -> Command {
    let mut command = world.command("bash");
    command.arg(packaged(arguments[0])).args(&arguments[1..]).current_dir(world.root());
    command.args(["--model", "scripted", "--base-url", &server.base_url()]);
    command.env("PATH", path()).env("ANTHROPIC_API_KEY", KEY);
    command
}

fn shard(world: &World, server: &ReplayServer, shard: &str) -> Finished {
    let mut command = script(world, server, &["slurm.sh", "tasks.jsonl", "results", "--jobs", "2"]);
    Finished::of(command.env("SLURM_ARRAY_TASK_ID", shard).env("SLURM_ARRAY_TASK_COUNT", "3"))
}

fn merge(world: &World, arguments: &[&str]) -> Finished {
    let mut command = world.bailiwick(["batch", "merge"]);
    Finished::of(command.args(arguments).current_dir(world.root()))
}

fn predictions(world: &World, output: &str) -> BTreeMap<String, String> {
    let path = world.root().join(output).join("predictions/predictions.jsonl");
    let mut found = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let member = |name: &str| line[name].as_str().unwrap().to_owned();
        assert_eq!(
            found.insert(member("instance_id"), member("model_patch")),
            None,
            "a task has two predictions"
        );
    }
    found
}

fn each_exactly_once(world: &World, output: &str, count: usize) {
    let found = predictions(world, output);
    assert_eq!(found.len(), count);
    for (id, patch) in &found {
        assert!(patch.contains(&format!("+{id}\n")), "{id}: {patch}");
        let traces = world.root().join(output).join("instances").join(id);
        assert!(traces.join("session.jsonl").is_file() && traces.join(format!("{id}.traj.json")).is_file());
    }
    let whole: Value =
        serde_json::from_slice(&fs::read(world.root().join(output).join("predictions/preds.json")).unwrap())
            .unwrap();
    assert_eq!(whole.as_object().unwrap().len(), count);
}

#[test]
fn shards_of_an_array_are_everything_and_merge_into_one() {
    let (world, server) = with_tasks(7);
    let shards = ["results/shard-1", "results/shard-2", "results/shard-3"];
    for (index, taken) in [("1", 3), ("3", 2)] {
        let run = shard(&world, &server, index).expect(0);
        assert!(run.stderr.contains(&format!("{taken} to run")), "{}", run.stderr);
    }
    // One shard has not run yet: its tasks are reported as missing. All tasks of the other shards have results.
    let all = ["--tasks", "tasks.jsonl", "--output"];
    let run = merge(&world, &[&[shards[0], shards[2]][..], &all, &["part"]].concat()).expect(3);
    assert!(run.stderr.contains("no result of these tasks: t001 (queued), t004 (queued)"), "{}", run.stderr);
    each_exactly_once(&world, "part", 5);
    assert_eq!(shard(&world, &server, "2").code, 0);
    let run = merge(&world, &[&shards[..], &all, &["all"]].concat()).expect(0);
    assert!(run.stderr.contains("all: 7/7 · 7 done"), "{}", run.stderr);
    each_exactly_once(&world, "all", 7);
    let report =
        Finished::of(world.bailiwick(["batch", "report", "all"]).current_dir(world.root())).expect(0);
    assert!(report.stdout.contains("7/7 · 7 done"), "{}", report.stdout);
    // The merged directory is like that of any batch: nothing is left to do there.
    let asked = server.requests().len();
    let mut again = world.bailiwick(["batch", "tasks.jsonl", "--output", "all", "--model", "scripted"]);
    again.args(["--base-url", &server.base_url()]).env("ANTHROPIC_API_KEY", KEY).current_dir(world.root());
    Finished::of(&mut again).expect(0);
    assert_eq!(server.requests().len(), asked);
    let refused = merge(&world, &[shards[0], "--output", "all"]).expect(2);
    assert!(refused.stderr.contains("cannot write all: the path exists already"), "{}", refused.stderr);
}

#[test]
fn two_results_of_a_task_are_merged_only_where_they_are_the_same() {
    let (world, server) = with_tasks(2);
    let run = |output: &str, more: &[&str]| {
        let mut command =
            world.bailiwick(["batch", "tasks.jsonl", "--output", output, "--model", "scripted"]);
        command.args(["--base-url", &server.base_url()]).args(more);
        Finished::of(command.env("ANTHROPIC_API_KEY", KEY).current_dir(world.root())).expect(0);
    };
    run("one", &[]);
    run("two", &[]);
    let copied = world.command("cp").args(["-a", "one", "copy"]).current_dir(world.root()).status().unwrap();
    assert!(copied.success());
    merge(&world, &["one", "copy", "--output", "same"]).expect(0);
    each_exactly_once(&world, "same", 2);
    let refused = merge(&world, &["one", "two", "--output", "both"]).expect(2);
    let said = "cannot merge t000: one and two have different results of this task";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    run("other", &["--name", "other"]);
    let refused = merge(&world, &["one", "other", "--output", "both"]).expect(2);
    assert!(refused.stderr.contains("the name of the model of their batches differs"), "{}", refused.stderr);
    let refused = merge(&world, &["one", "nowhere", "--output", "both"]).expect(2);
    assert!(
        refused.stderr.contains("nowhere: it is not the output directory of a batch"),
        "{}",
        refused.stderr
    );
    fs::write(world.root().join("others.jsonl"), r#"{"id":"x","prompt":"task x","directory":"."}"#).unwrap();
    let refused = merge(&world, &["one", "--tasks", "others.jsonl", "--output", "both"]).expect(2);
    assert!(refused.stderr.contains("the shards ran another file of tasks"), "{}", refused.stderr);
    let left = fs::read_dir(world.root()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".merge-")).collect();
    assert!(left.is_empty() && !world.root().join("both").exists(), "{left:?}");
}

#[test]
fn a_script_outside_of_an_array_says_what_starts_one() {
    let (world, server) = with_tasks(1);
    let run = Finished::of(&mut script(&world, &server, &["slurm.sh", "tasks.jsonl", "results"]));
    assert!(run.code != 0 && run.stderr.contains("sbatch --array=1-N"), "{}", run.stderr);
    assert!(server.requests().is_empty());
}

#[test]
fn gnu_parallel_runs_each_shard() {
    if !world_has("parallel") {
        skip!("not on this machine: parallel");
    }
    let (world, server) = with_tasks(5);
    let mut command = script(&world, &server, &["parallel.sh", "3", "tasks.jsonl", "results"]);
    let run = Finished::of(&mut command);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let shards = ["results/shard-1", "results/shard-2", "results/shard-3"];
    merge(&world, &[&shards[..], &["--tasks", "tasks.jsonl", "--output", "all"]].concat()).expect(0);
    each_exactly_once(&world, "all", 5);
}

fn world_has(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success()
}

/// Reads the manifest by a YAML parser, if Python has one.
#[test]
fn the_manifest_has_a_shard_for_each_index() {
    let script = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let python = std::env::var("BAILIWICK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let read = Command::new(python).args(["-c", script]).arg(packaged("kubernetes.yaml")).output().unwrap();
    if !read.status.success() && String::from_utf8_lossy(&read.stderr).contains("No module named 'yaml'") {
        skip!("the Python package yaml is not installed");
    }
    let job: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!((&job["kind"], &job["spec"]["completionMode"]), (&json!("Job"), &json!("Indexed")));
    let pod = &job["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let shards = container["env"].as_array().unwrap().iter().find(|variable| variable["name"] == "SHARDS");
    let completions = job["spec"]["completions"].as_u64().unwrap();
    assert_eq!(shards.unwrap()["value"], json!(completions.to_string()));
    // The command is a bash script, and numbers the shards from 1.
    let (world, server) = with_tasks(1);
    let line = container["command"][2].as_str().unwrap();
    let line = line.replace("/batch/", &format!("{}/", world.root().display()));
    let line = format!("{} --model claude-opus-5-5 --base-url {}", line.trim_end(), server.base_url());
    let mut command = world.command("bash");
    command.args(["-c", &line]).env("PATH", path()).env("ANTHROPIC_API_KEY", KEY);
    let run = Finished::of(command.env("JOB_COMPLETION_INDEX", "0").env("SHARDS", "8"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    each_exactly_once(&world, "results/shard-1", 1);
}
