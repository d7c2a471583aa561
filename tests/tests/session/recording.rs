//! Tests the recording and replaying of a run: the replay is the same run, or shows the first difference.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use insta::assert_snapshot;
use model::replay::{ReplayServer, Reply};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::replies::{calls, done, serve, shell};
use tests::tier::everywhere;
use tests::world::KEY;
use tests::{Finished, User, World};

fn sample_project(world: &World) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/projects/crate");
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                world.file(name, fs::read(&path).unwrap());
            }
        }
    }
}

/// Starts a model server that gives tool calls which read, write and copy files, after one error (overloaded) and one
/// broken connection.
fn scripted() -> ReplayServer {
    let look = calls(&[
        ("read_file", json!({"path": "Cargo.toml"})),
        ("shell_exec", json!({"command": "pwd; echo $TMPDIR; cat README.md", "access": "read"})),
    ]);
    serve([
        Reply::error(529, "overloaded_error", "Overloaded").header("retry-after-ms", "1"),
        Reply::sse(look.clone()).cut_after(700),
        Reply::sse(look).chunked(50),
        Reply::sse(calls(&[("write_file", json!({"path": "notes/new.md", "content": "# Notes\n"}))])),
        Reply::sse(shell("cp notes/new.md notes/old.md; ls notes")),
        Reply::sse(done()),
    ])
}

/// Records a run, and returns the directory of the recording.
fn record(world: &World) -> PathBuf {
    sample_project(world);
    let place = world.home().join("recording");
    let server = scripted();
    let done =
        Finished::of(&mut world.exec(&server, &["--mode", "auto", "--record", place.to_str().unwrap()]));
    assert_eq!((done.code, server.remaining()), (0, 0), "{}\n{}", done.stdout, done.stderr);
    place
}

fn replay(world: &World, recording: &Path) -> Finished {
    let mut replay = world.bailiwick(["replay", recording.to_str().unwrap(), "-C"]);
    Finished::of(replay.arg(world.project()).args(world.tier_flags()))
}

fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push((path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_recorded_run_is_repeated_elsewhere_to_the_same_tree() {
    for (user, tier) in everywhere() {
        let first = World::new(user).in_tier(tier);
        let recording = record(&first);
        assert_eq!(recording.metadata().unwrap().mode() & 0o777, 0o700);
        for entry in fs::read_dir(&recording).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600, "{}", path.display());
            assert!(!String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(KEY), "{}", path.display());
        }
        let second = World::new(user).in_tier(tier);
        sample_project(&second);
        let again = replay(&second, &recording);
        assert_eq!(again.code, 0, "{}\n{}", again.stdout, again.stderr);
        assert_eq!(tree(&second.project()), tree(&first.project()));
        assert_eq!(second.read("notes/old.md"), "# Notes\n");
    }
}

#[test]
fn a_run_that_differs_is_stopped_where_it_does_and_the_difference_is_shown() {
    let user = User::Myself;
    let first = World::new(user);
    let recording = record(&first);
    let second = World::new(user);
    sample_project(&second);
    let text = second.read("Cargo.toml").replace("edition = \"2021\"", "edition = \"2024\"");
    second.file("Cargo.toml", text);
    let again = replay(&second, &recording);
    assert_eq!(again.code, 6, "{}\n{}", again.stdout, again.stderr);
    let (_, report) = again.stderr.rsplit_once("bailiwick: ").unwrap();
    assert_snapshot!(report, @r#"
    request 4 differs from the recorded request (0004.request.json)
      at messages[2].content[0].content
    --- recorded
    +++ this run
          1	[package]
          2	name = "sizes"
          3	version = "0.3.1"
    -     4	edition = "2021"
    +     4	edition = "2024"
          5	description = "Reads and prints sizes such as 1.5 MiB"
          6	license = "MIT OR Apache-2.0"
          7	
    "#);
    assert!(!second.project().join("notes").exists(), "nothing of what followed was done");
}

#[test]
fn requests_that_are_missing_or_more_are_said_and_damaged_recordings_are_named() {
    let user = User::Myself;
    let first = World::new(user);
    let recording = record(&first);
    let fresh = || {
        let world = World::new(user);
        sample_project(&world);
        world
    };
    for name in ["0006.request.json", "0006.meta.json", "0006.response.sse"] {
        fs::rename(recording.join(name), first.home().join(name)).unwrap();
    }
    let more = replay(&fresh(), &recording);
    assert_eq!(more.code, 6, "{}", more.stderr);
    assert!(more.stderr.contains("sent 6 requests to the model, and the recording has 5"), "{}", more.stderr);
    let run = fs::read_to_string(recording.join("run.json")).unwrap();
    let cut = r#""images": [{"media_type":"image/png","width":48,"height":32,"data":"iVBORw0KGgo="}]"#;
    let with_cut = run.replacen("\"prompt\"", &format!("{cut},\n    \"prompt\""), 1);
    fs::write(recording.join("run.json"), with_cut).unwrap();
    let picture = replay(&fresh(), &recording);
    assert_eq!(picture.code, 2, "{}", picture.stderr);
    assert!(picture.stderr.contains("run.json: the picture is a damaged png picture"), "{}", picture.stderr);
    fs::write(recording.join("run.json"), run).unwrap();
    let last = fs::read(recording.join("0005.response.sse")).unwrap();
    fs::write(recording.join("0005.response.sse"), &last[..last.len() / 2]).unwrap();
    let torn = replay(&fresh(), &recording);
    assert_eq!(torn.code, 2, "{}", torn.stderr);
    assert!(
        torn.stderr.contains("0005.response.sse") && torn.stderr.contains("cut off or edited"),
        "{}",
        torn.stderr
    );
    fs::remove_file(recording.join("0003.meta.json")).unwrap();
    let gap = replay(&fresh(), &recording);
    assert!(gap.code == 2 && gap.stderr.contains("0003.meta.json"), "{}", gap.stderr);
}

#[test]
fn a_run_that_ends_early_is_not_the_recorded_one() {
    let user = User::Myself;
    let first = World::new(user);
    let recording = record(&first);
    let world = World::new(user);
    sample_project(&world);
    let text = fs::read_to_string(recording.join("run.json")).unwrap();
    fs::write(recording.join("run.json"), text.replacen("\"places\"", "\"max_steps\": 1,\n  \"places\"", 1))
        .unwrap();
    let again = replay(&world, &recording);
    assert_eq!(again.code, 6, "{}", again.stderr);
    assert!(
        again.stderr.contains("ended after 3 of 6 recorded requests: 0004.request.json was never sent"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_recording_is_served_to_other_clients() {
    let world = World::new(User::Myself);
    let recording = record(&world);
    let mut serve = world.bailiwick(["replay", recording.to_str().unwrap(), "--serve"]);
    let mut child = serve.stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let ask = || {
        let request = recording.join("0001.request.json");
        let mut debug = world.bailiwick(["debug", "stream", "--base-url", url.trim(), "--request"]);
        Finished::of(debug.arg(request).env("ANTHROPIC_API_KEY", KEY)).stdout
    };
    assert!(ask().contains("overloaded_error"));
    assert!(ask().contains("truncated_stream"));
    assert!(ask().contains(r#""stop_reason":"tool_use""#));
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_directory_that_is_not_empty_is_no_place_for_a_recording() {
    let world = World::new(User::Myself);
    let server = serve([]);
    world.file("a", "a");
    let full = world.project().to_str().unwrap().to_owned();
    let refused = Finished::of(&mut world.exec(&server, &["--record", &full]));
    assert_eq!((refused.code, server.connections()), (2, 0));
    assert!(
        refused.stderr.contains("is not empty") && refused.stderr.contains("hint:"),
        "{}",
        refused.stderr
    );
    let inside = format!("{full}/recording");
    let server = serve([Reply::sse(done())]);
    let warned = Finished::of(&mut world.exec(&server, &["--mode", "auto", "--record", &inside]));
    assert_eq!(warned.code, 0, "{}", warned.stderr);
    assert!(warned.stderr.contains("where the agent can write"), "{}", warned.stderr);
}
