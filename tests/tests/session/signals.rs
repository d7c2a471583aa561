//! Tests signals at random moments of a start. Each program ends with the right exit code, logs its result if there is
//! a log, and leaves no process, private temp directory or control group behind.
//!
//! CI sends a hundred signals to each program. `BAILIWICK_SIGNALS` sets another number, as `just soak` does.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what repeats it"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::programs::with_sandbox_exec;
use tests::random::Random;
use tests::replies::model;
use tests::ui::Ui;
use tests::world::KEY;
use tests::{Finished, User, World, marked, tier, wait_until};
use tokio::signal::unix::{SignalKind, signal};

/// Latest moment of a signal, in microseconds after the start. By then, the command usually runs.
const MOMENTS: u64 = 200_000;

/// Maximum time that a process may survive the end of its program.
const AFTERLIFE: Duration = Duration::from_secs(30);

/// Number of parallel runs. It exceeds the number of processors, because a run mostly waits.
const AT_ONCE: u64 = 4;

const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Returns the number of signals for each program.
fn how_many() -> u64 {
    std::env::var("BAILIWICK_SIGNALS").map_or(100, |number| number.parse().unwrap())
}

/// Signal, and the time after the start at which it is sent.
#[derive(Clone, Copy, Debug)]
struct Shot {
    signal: Signal,
    after: Duration,
}

impl Shot {
    const fn code(self) -> i32 {
        128 + self.signal as i32
    }

    /// Sends the signal to a process. Returns the control groups of the world's processes at that moment.
    fn hit(self, world: &World, pid: u32) -> Vec<PathBuf> {
        // A fixed time and no event, since the test must hold for any moment.
        thread::sleep(self.after);
        kill(Pid::from_raw(pid.cast_signed()), self.signal).unwrap();
        marked(world.mark().as_bytes()).into_iter().filter_map(group).collect()
    }
}

/// Makes `number` attempts at random moments. With `SIGNALS_SEED`, they are repeated as far as the scheduler permits.
/// `attempt` returns true if the signal came so late that the program could leave something behind. If that is rare in
/// the first half, the second half uses later moments.
fn at_random_moments(number: u64, signals: &[Signal], attempt: impl Fn(Shot) -> bool + Sync) {
    let now = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos());
    let seed = std::env::var("SIGNALS_SEED").ok().map_or_else(now, |seed| seed.parse().unwrap());
    eprintln!("SIGNALS_SEED={seed}");
    ignores_nothing();
    let (next, late) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= number {
            return;
        }
        let mut random = Random::new(seed.wrapping_add(index));
        let signal = signals[usize::try_from(index).unwrap() % signals.len()];
        let is_slow = index > number / 2 && late.load(Ordering::Relaxed) <= number / 50;
        let moments = if is_slow { 10 * MOMENTS } else { MOMENTS };
        let shot = Shot { signal, after: Duration::from_micros(random.below(moments)) };
        if attempt(shot) {
            late.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let late = late.into_inner();
    assert!(late > number / 50, "only {late} of {number} signals came late enough");
}

/// Starts a model server whose first call is a command that runs long.
fn slow() -> ReplayServer {
    model(&[("shell_exec", json!({"command": "sleep 60"}))])
}

/// Returns the control group that Bailiwick created for a program in the floor tier (`cgroups(7)`). `None` if the
/// process is in no such group.
fn group(pid: u32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| Path::new(root).join(own));
    roots.into_iter().find(|path| own.contains("bailiwick-") && path.is_dir())
}

/// Checks that no process, private temp directory or control group is left.
fn nothing_is_left(world: &World, groups: &[PathBuf], shot: &str) {
    let ended = Instant::now();
    while !marked(world.mark().as_bytes()).is_empty() {
        assert!(ended.elapsed() < AFTERLIFE, "{shot}: {:?} live on", marked(world.mark().as_bytes()));
        thread::sleep(Duration::from_millis(2));
    }
    assert!(!groups.iter().any(|group| group.exists()), "{shot}: {groups:?}");
    assert_eq!(world.temps(), Vec::<PathBuf>::new(), "{shot}");
    let place = world.own().join("cache/temps");
    if fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).is_ok() {
        assert_eq!(fs::read_dir(place).unwrap().count(), 0, "{shot}");
    }
}

/// Checks that the last event in the log is a result with this code. Returns false if there is no log.
fn result_is_logged(world: &World, code: i32, shot: &str) -> bool {
    let log = world.log();
    let Some(last) = log.last() else { return false };
    assert_eq!(last["type"], "result", "{shot}: {log:?}");
    assert_eq!(last["data"]["exit_code"], code, "{shot}: {last}");
    true
}

/// Installs a handler for each signal that this process ignores, as under nohup(1). A child process then has the
/// default action for such a signal (execve(2)). It would inherit an ignored signal as ignored.
fn ignores_nothing() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        for ending in SIGNALS.into_iter().chain([Signal::SIGQUIT]).filter(|ending| is_ignored(*ending)) {
            drop(signal(SignalKind::from_raw(ending as i32)).unwrap());
        }
    });
}

fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal as u32 - 1) & 1 == 1
}

fn start(command: &mut Command) -> Child {
    ignores_nothing();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> Finished {
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_run_ends_with_its_code_a_result_and_no_litter() {
    at_random_moments(how_many(), &SIGNALS, |shot| {
        let world = World::new(User::Myself);
        let server = slow();
        let child = start(&mut world.exec(&server, &["--mode", "auto"]));
        let groups = shot.hit(&world, child.id());
        let run = end(child);
        let shot_text = format!("{shot:?}");
        assert_eq!(run.code, shot.code(), "{shot_text}: {} {}", run.stdout, run.stderr);
        nothing_is_left(&world, &groups, &shot_text);
        let is_logged = result_is_logged(&world, run.code, &shot_text);
        if is_logged {
            assert_eq!(run.result()["exit_code"], run.code, "{shot_text}");
        }
        is_logged
    });
}

#[test]
fn a_server_ends_with_its_code_and_its_conversation_with_a_result() {
    at_random_moments(how_many() / 4, &SIGNALS, |shot| {
        let world = World::new(User::Myself);
        let server = slow();
        let options = json!({"cwd": world.project(), "base_url": server.base_url(), "mode": "auto"});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
        let open = json!({"jsonrpc": "2.0", "id": 2, "method": "newConversation", "params": options});
        let mut command = world.bailiwick(["serve"]);
        command.env("ANTHROPIC_API_KEY", KEY).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // The pipe has room for all of this, so the write does not block.
        writeln!(input, "{hello}\n{open}").unwrap();
        let groups = shot.hit(&world, child.id());
        let ended = child.wait_with_output().unwrap();
        drop(input);
        let ended = Finished::from(ended);
        let shot_text = format!("{shot:?}");
        assert_eq!(ended.code, shot.code(), "{shot_text}: {} {}", ended.stdout, ended.stderr);
        nothing_is_left(&world, &groups, &shot_text);
        result_is_logged(&world, shot.code(), &shot_text)
    });
}

#[test]
fn the_terminal_ui_ends_with_its_code_and_a_result() {
    at_random_moments(how_many() / 4, &[Signal::SIGTERM, Signal::SIGHUP], |shot| {
        let world = World::new(User::Myself);
        let server = slow();
        let ui = Ui::start(&world.ui(&server, &["--mode", "auto", "do it"]), (80, 24));
        let groups = shot.hit(&world, ui.pid());
        let left = ui.end();
        let shot_text = format!("{shot:?}");
        nothing_is_left(&world, &groups, &shot_text);
        let is_logged = result_is_logged(&world, shot.code(), &shot_text);
        // For a program that a signal ended by default, portable_pty reports no signal but the exit code 1.
        let codes = if is_logged { [shot.code(); 2] } else { [shot.code(), 1] };
        assert!(codes.contains(&i32::try_from(left.code).unwrap()), "{shot_text}: {}", left.code);
        assert!(left.modes.is_empty(), "{shot_text}: {:?}", left.modes);
        is_logged
    });
}

#[test]
fn a_sandboxed_command_ends_with_the_code_of_the_signal() {
    at_random_moments(how_many() / 2, &[SIGNALS[0], SIGNALS[1], SIGNALS[2], Signal::SIGQUIT], |shot| {
        let world = World::new(User::Myself);
        let mut command = world.sandbox(tier::all()[0], &[], "bash");
        let child = start(command.args(["-c", "echo started; sleep 60"]));
        let groups = shot.hit(&world, child.id());
        let run = end(child);
        let shot_text = format!("{shot:?}");
        assert_eq!(run.code, shot.code(), "{shot_text}: {} {}", run.stdout, run.stderr);
        assert!(!run.stderr.contains("bailiwick: "), "{shot_text}: {}", run.stderr);
        nothing_is_left(&world, &groups, &shot_text);
        // Returns true if there was something to leave behind: the directory of the temp directories' locks exists.
        world.own().join("state/temps").is_dir()
    });
}

/// Commands that start sandboxes for their own use.
const LOOKING: [&[&str]; 4] = [&["doctor"], &["explain", "."], &["audit", "--probe"], &["demo", "--attack"]];

#[test]
fn what_looks_at_this_machine_ends_with_the_code_of_the_signal() {
    for command in LOOKING {
        at_random_moments(how_many() / 10, &SIGNALS, |shot| {
            let world = World::new(User::Myself);
            let temp = world.root().join("temp");
            fs::create_dir(&temp).unwrap();
            let child = start(world.bailiwick(command).current_dir(world.project()).env("TMPDIR", &temp));
            let groups = shot.hit(&world, child.id());
            let run = end(child);
            let shot_text = format!("{command:?} {shot:?}");
            // The program may have ended before the signal.
            assert!([shot.code(), 0].contains(&run.code), "{shot_text}: {} {}", run.stdout, run.stderr);
            nothing_is_left(&world, &groups, &shot_text);
            // The parent of private temp directories stays, as after every run.
            let place = temp.join(format!("bailiwick-{}", world.user().uid()));
            let within =
                |path: &Path| fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
            let left: Vec<_> = within(&temp).filter(|path| *path != place).chain(within(&place)).collect();
            assert_eq!(left, Vec::<PathBuf>::new(), "{shot_text}");
            world.own().join("state").is_dir() || command[0] == "demo"
        });
    }
}

/// Returns the command as nohup(1) would start it.
fn under_nohup(command: &Command) -> Command {
    let mut wrapped = Command::new("/bin/sh");
    wrapped
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        wrapped.current_dir(directory);
    }
    wrapped.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            wrapped.env(name, value);
        }
    }
    wrapped.process_group(0);
    wrapped
}

/// Command that waits for the file `go` before it ends.
const UNTIL_GO: &str = "touch begun; until [ -e go ]; do sleep 0.01; done; echo went on > end";

/// Sends SIGHUP to a program and all its descendants, as a terminal does, after its command has started. Then lets the
/// command end.
fn hang_up(world: &World, mut command: Command) -> Finished {
    let child = start(&mut command);
    wait_until("the command has begun", || world.project().join("begun").exists());
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGHUP).unwrap();
    fs::write(world.project().join("go"), "").unwrap();
    end(child)
}

#[test]
fn a_hang_up_that_is_ignored_from_the_start_stays_ignored() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let server = model(&[("shell_exec", json!({"command": UNTIL_GO}))]);
        let mut exec = world.exec(&server, &["--mode", "auto"]);
        let run = hang_up(&world, under_nohup(exec.args(tier::flags(tier))));
        assert_eq!(run.code, 0, "{tier}: {} {}", run.stdout, run.stderr);
        assert_eq!(world.read("end"), "went on\n", "{tier}");

        let world = World::new(User::Myself);
        let mut sandbox = world.sandbox(tier, &[], "bash");
        let run = hang_up(&world, under_nohup(sandbox.args(["-c", UNTIL_GO])));
        assert_eq!(run.code, 0, "{tier}: {} {}", run.stdout, run.stderr);
        assert_eq!(world.read("end"), "went on\n", "{tier}");
    }
}

/// Control: without nohup(1), SIGHUP ends the program.
#[test]
fn a_hang_up_ends_what_does_not_ignore_it() {
    let world = World::new(User::Myself);
    let mut sandbox = world.sandbox(tier::all()[0], &[], "bash");
    sandbox.args(["-c", "touch begun; sleep 60"]).process_group(0);
    let run = hang_up(&world, sandbox);
    assert_eq!(run.code, 129, "{} {}", run.stdout, run.stderr);
    nothing_is_left(&world, &[], "hang-up");
}

/// Tests that the terminal UI ends with its terminal, even if signals are ignored.
#[test]
fn a_hang_up_ends_a_terminal_ui_in_any_case() {
    let world = World::new(User::Myself);
    let server = slow();
    let ui = Ui::start(&under_nohup(&world.ui(&server, &["--mode", "auto", "do it"])), (80, 24));
    wait_until("there is a log", || !world.log().is_empty());
    kill(Pid::from_raw(ui.pid().cast_signed()), Signal::SIGHUP).unwrap();
    assert_eq!(ui.end().code, 129);
    nothing_is_left(&world, &[], "hang-up");
}

/// Scripts that replace sandbox-exec and never become ready: one ends when it is asked to, and one does not.
const NEVER_READY: [&str; 2] =
    ["#!/bin/bash\nexec sleep 1000\n", "#!/bin/bash\ntrap '' TERM INT HUP\nexec sleep 1000\n"];

/// Maximum time for the end of a program whose sandbox never becomes ready. It is shorter than the time limit of a
/// start. A process that does not end when asked gets two seconds.
const PROMPTLY: Duration = Duration::from_secs(15);

/// Returns `exec` with the given script in place of sandbox-exec.
fn never_ready(world: &World, script: &str, server: &ReplayServer, arguments: &[&str]) -> Command {
    let usual = world.exec(server, arguments);
    let mut command = world.command(with_sandbox_exec(world.root(), script));
    command.args(usual.get_args()).env("ANTHROPIC_API_KEY", KEY);
    command
}

#[test]
fn a_run_whose_sandbox_never_gets_ready_ends_when_it_is_told_to() {
    for script in NEVER_READY {
        for signal in SIGNALS {
            let world = World::new(User::Myself);
            let server = model(&[]);
            let child = start(&mut never_ready(&world, script, &server, &[]));
            wait_until("there is a log", || !world.log().is_empty());
            let told = Instant::now();
            kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
            let run = end(child);
            assert!(told.elapsed() < PROMPTLY, "{signal}: {:?}", told.elapsed());
            assert_eq!(run.code, 128 + signal as i32, "{}\n{}", run.stdout, run.stderr);
            assert_eq!(run.result()["exit_code"], run.code);
            assert_eq!(server.connections(), 0);
            nothing_is_left(&world, &[], signal.as_str());
        }
    }
}

#[test]
fn a_run_whose_sandbox_never_gets_ready_ends_with_its_time() {
    for script in NEVER_READY {
        let world = World::new(User::Myself);
        let server = model(&[]);
        let began = Instant::now();
        let run = end(start(&mut never_ready(&world, script, &server, &["--timeout", "0.3"]))).expect(3);
        assert!(began.elapsed() < PROMPTLY, "{:?}", began.elapsed());
        assert_eq!(run.result()["reason"], "time_limit");
        nothing_is_left(&world, &[], "time");
    }
}

#[test]
fn a_sandboxed_command_that_never_starts_ends_with_the_code_of_the_signal() {
    for script in NEVER_READY {
        for signal in SIGNALS {
            let world = World::new(User::Myself);
            let mut command = world.command(with_sandbox_exec(world.root(), script));
            let child = start(command.args(["sandbox", "-C"]).arg(world.project()).args(["--", "true"]));
            wait_until("it has its temps", || !world.temps().is_empty());
            let told = Instant::now();
            kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
            let run = end(child);
            assert!(told.elapsed() < PROMPTLY, "{signal}: {:?}", told.elapsed());
            assert_eq!(run.code, 128 + signal as i32, "{}\n{}", run.stdout, run.stderr);
            nothing_is_left(&world, &[], signal.as_str());
        }
    }
}

/// Tests a conversation whose turn waits for its worker: the turn can be interrupted, and the server closed.
#[test]
fn a_conversation_whose_sandbox_never_gets_ready_can_be_interrupted_and_closed() {
    let world = World::new(User::Myself);
    let server = model(&[]);
    let mut command = world.command(with_sandbox_exec(world.root(), NEVER_READY[0]));
    command.arg("serve").env("ANTHROPIC_API_KEY", KEY).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    let mut next = |is_it: &dyn Fn(&Value) -> bool| loop {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if is_it(&line) {
            return line;
        }
    };
    let mut send = |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        writeln!(input, "{request}").unwrap();
    };
    send("initialize", json!({}));
    send("newConversation", json!({"cwd": world.project(), "base_url": server.base_url(), "mode": "auto"}));
    let id = next(&|line| line["id"] == "newConversation")["result"]["conversation_id"].clone();
    send("sendUserMessage", json!({"conversation_id": id, "text": "do it"}));
    next(&|line| line["id"] == "sendUserMessage");
    let told = Instant::now();
    send("interrupt", json!({"conversation_id": id}));
    next(&|line| line["id"] == "interrupt");
    send("closeConversation", json!({"conversation_id": id}));
    let result = next(&|line| line["method"] == "event/result");
    assert_eq!(result["params"]["data"]["reason"], "closed");
    send("shutdown", json!({}));
    next(&|line| line["id"] == "shutdown");
    assert!(told.elapsed() < PROMPTLY, "{:?}", told.elapsed());
    assert_eq!(end(child).code, 0);
    assert_eq!(server.connections(), 0);
    nothing_is_left(&world, &[], "interrupt");
}
