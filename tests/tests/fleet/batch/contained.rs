//! Tests tasks in containers. An imitated container engine runs their commands without a container.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use model::replay::{RecordedRequest, ReplayServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::programs::write_script;
use tests::world::KEY;
use tests::{Finished, World, marked, wait_until};

use crate::batch::{children, each_exactly_once, model, out, pid, repository, start};

/// Imitated container engine: translates the paths of mounts, runs each command without a container, and keeps a file
/// for each running container.
const ENGINE: &str = r#"#!/bin/bash
set -u
here=$(dirname "$0"); state=$here/containers; mkdir -p "$state"
printf '%s\n' "$*" >> "$here/log"
[ -e "$here/away" ] && { echo 'Cannot connect to the Docker daemon. Is it running?' >&2; exit 1; }
id() { printf %s "$1" | md5sum | cut -c1-12; }
case $1 in
ps)
    case $* in
    *name=*) one=$(id "$(printf %s "$5" | sed 's/^name=^\(.*\)\$$/\1/')"); [ -e "$state/$one" ] && echo "$one"; exit 0 ;;
    esac
    ls "$state" ;;
rm)
    shift
    for one in "$@"; do
        case $one in -*) continue ;; esac
        for file in "$state/$one" "$state/$(id "$one")"; do
            if pid=$(cat "$file" 2>/dev/null); then kill -TERM "$pid" 2>/dev/null; rm -f "$file"; fi
        done
    done ;;
run)
    shift
    while :; do
        case $1 in
        --rm|--interactive) shift ;;
        --name) name=$2; shift 2 ;;
        --mount)
            source=${2#*source=}; source=${source%%,*}
            case $2 in
            *target=/bailiwick-relay*) relay=$source ;;
            *target=/bailiwick-out*) out=$source ;;
            *target=/bailiwick,*) programs=$source ;;
            esac
            shift 2 ;;
        --network) [ "$2" = none ] || exit 125; shift 2 ;;
        --label|--env|--workdir|--entrypoint) shift 2 ;;
        *) break ;;
        esac
    done
    [ "$1" = image:1 ] || exit 125
    shift
    project=$(mktemp -d "$here/project-XXXXXX")
    cp -a "$here/template/." "$project"
    words=()
    for word in "$@"; do
        word=${word//\/bailiwick-out/$out}; word=${word//\/bailiwick-relay/$relay}; words+=("${word//\/testbed/$project}")
    done
    exec 3<&0
    (env BAILIWICK_HOME="$out/home" "$programs/bailiwick" "${words[@]}" <&3 > "$out/told" & echo $! > "$state/$(id "$name")"; wait $!)
    status=$?
    sed "s#$out#/bailiwick-out#g" "$out/told"
    rm -rf "$project" "$state/$(id "$name")"
    exit $status ;;
esac
"#;

/// Creates a world with the engine, and tasks that run in images of it.
fn contained(count: usize) -> (World, PathBuf) {
    let (world, _) = repository();
    let engine = world.root().join("engine");
    fs::create_dir(&engine).unwrap();
    write_script(&engine.join("docker"), ENGINE);
    fs::rename(world.project(), engine.join("template")).unwrap();
    fs::create_dir(world.project()).unwrap();
    let task = |index| {
        let id = format!("t{index:03}");
        json!({"id": id, "prompt": format!("task {id}"), "image": "image:1"}).to_string()
    };
    let path = world.root().join("tasks.jsonl");
    fs::write(&path, (0..count).map(task).collect::<Vec<_>>().join("\n")).unwrap();
    (world, path)
}

fn in_containers(world: &World, server: &ReplayServer, tasks: &Path, arguments: &[&str]) -> Command {
    let mut command = world.bailiwick(["batch"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", world.root().join("engine").display()));
    command.arg(tasks).args(["--output", "out", "--engine", "docker", "--base-url", &server.base_url()]);
    command.args(["--model", "claude-opus-5-5", "--name", "bailiwick/scripted"]).args(arguments);
    command.env("ANTHROPIC_API_KEY", KEY);
    command
}

fn no_container_is_left(world: &World) {
    let containers = fs::read_dir(world.root().join("engine/containers")).into_iter().flatten().count();
    assert_eq!(containers, 0, "containers are left");
    assert!(!out(world, "relays").exists());
}

#[test]
fn tasks_run_in_containers_beside_a_relay_that_has_the_key() {
    let (world, tasks) = contained(3);
    let server = model(Duration::ZERO);
    let finished = Finished::of(&mut in_containers(&world, &server, &tasks, &["--max-usd", "5"]));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    each_exactly_once(&world, 3);
    no_container_is_left(&world);
    let log = fs::read_to_string(world.root().join("engine/log")).unwrap();
    assert!(log.contains("--network none") && !log.contains(KEY), "{log}");
    let has_key = |request: &RecordedRequest| request.header("x-api-key").is_some();
    assert!(server.requests().iter().all(has_key), "the relay has the key");
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn containers_of_a_killed_batch_are_removed_by_the_next_one() {
    let (world, tasks) = contained(6);
    let slow = model(Duration::from_secs(30));
    let mut first = start(in_containers(&world, &slow, &tasks, &[]));
    let containers = || fs::read_dir(world.root().join("engine/containers")).unwrap().count();
    wait_until("four runs ask their model", || slow.requests().len() == 4 && containers() == 4);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(containers(), 4, "they outlive it");
    let server = model(Duration::from_millis(100));
    let mut second = start(in_containers(&world, &server, &tasks, &["--jobs", "2"]));
    // The test kills relays meanwhile. Their runs are started again.
    let mut killed = 0;
    while second.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(20));
        let is_relay = |pid: &Pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"relay")
        };
        if let Some(relay) = children(pid(&second)).into_iter().find(is_relay).filter(|_| killed < 2) {
            killed += usize::from(kill(relay, Signal::SIGKILL).is_ok());
        }
    }
    let code = second.wait().unwrap().code();
    let report = Finished::of(world.bailiwick(["batch", "report"]).arg(world.root().join("out"))).stdout;
    assert_eq!((code, killed), (Some(0), 2), "{report}");
    each_exactly_once(&world, 6);
    no_container_is_left(&world);
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let (world, tasks) = contained(1);
    let server = model(Duration::ZERO);
    write_script(&world.root().join("engine/docker"), "#!/bin/sh\necho 'no daemon' >&2\nexit 1\n");
    let finished = Finished::of(&mut in_containers(&world, &server, &tasks, &[]));
    assert_eq!(finished.code, 2);
    assert!(finished.stderr.contains("cannot use docker: exit status 1: no daemon"), "{}", finished.stderr);
}

/// Returns the pids of the engine's clients that run a container.
fn clients(batch: Pid) -> Vec<Pid> {
    let is_one = |pid: &Pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.get(1).is_some_and(|word| word.ends_with(b"engine/docker"))
            && words.get(2) == Some(&&b"run"[..])
    };
    children(batch).into_iter().filter(is_one).collect()
}

fn end_at_once(process: Pid) {
    // It may have ended by itself.
    let _ = kill(process, Signal::SIGKILL);
}

#[test]
fn a_batch_waits_for_an_engine_that_ends_and_blames_no_task() {
    let (world, tasks) = contained(3);
    let server = model(Duration::from_secs(1));
    let mut command = in_containers(&world, &server, &tasks, &["--jobs", "2", "--max-failures", "1"]);
    let told = world.root().join("stderr");
    let errors = fs::File::create(&told).unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
    let said = |words: &str| fs::read_to_string(&told).unwrap().matches(words).count();
    let away = world.root().join("engine/away");
    // The engine disappears once more often than the runs of a task may crash.
    for loss in 1..=4 {
        wait_until("a container runs", || !clients(pid(&child)).is_empty());
        fs::write(&away, "").unwrap();
        clients(pid(&child)).into_iter().for_each(end_at_once);
        wait_until("the batch waits", || said("docker does not respond; the batch waits") == loss);
        fs::remove_file(&away).unwrap();
        wait_until("the batch continues", || said("docker responds again; the batch continues") == loss);
    }
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(0), "{}", fs::read_to_string(&told).unwrap());
    each_exactly_once(&world, 3);
    no_container_is_left(&world);
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn a_batch_that_waits_for_its_engine_ends_by_a_signal() {
    let (world, tasks) = contained(1);
    let server = model(Duration::from_secs(30));
    let mut child = start(in_containers(&world, &server, &tasks, &[]));
    wait_until("the run asks its model", || !server.requests().is_empty());
    fs::write(world.root().join("engine/away"), "").unwrap();
    clients(pid(&child)).into_iter().for_each(end_at_once);
    wait_until("no run is left", || clients(pid(&child)).is_empty());
    kill(pid(&child), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    // Once the engine is back, the next batch finds the container that is left.
    fs::remove_file(world.root().join("engine/away")).unwrap();
    let server = model(Duration::ZERO);
    Finished::of(&mut in_containers(&world, &server, &tasks, &[])).expect(0);
    each_exactly_once(&world, 1);
    no_container_is_left(&world);
}
