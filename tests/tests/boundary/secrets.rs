//! Tests that only the supervisor has the API key: no worker, broker, command, file, log, patch or message contains it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use memchr::memmem;
use model::replay::{ReplayServer, Reply};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::json;
use tests::replies::{model, serve};
use tests::world::{KEY, tool_results};
use tests::{Finished, User, World, marked, skip, wait_until};

/// Command that runs until the test writes to the fifo `gate`.
const WAIT: &str = "mkfifo gate; echo from the command; echo $$ > pid; mv pid running; read < gate";

/// Run whose command is still running.
struct Running {
    world: World,
    server: ReplayServer,
    child: Child,
    patch: PathBuf,
    trace: PathBuf,
}

impl Running {
    fn start(user: User) -> Self {
        let world = World::new(user);
        world.file("kept.txt", "kept\n");
        let server = model(&[
            ("write_file", json!({"path": "new.txt", "content": "new\n"})),
            ("shell_exec", json!({"command": WAIT})),
        ]);
        let (patch, trace) = (world.own().join("out.diff"), world.own().join("trace.log"));
        let mut command = world.exec(&server, &["--mode", "auto", "--patch", patch.to_str().unwrap()]);
        command.env("BAILIWICK_LOG", "trace").env("BAILIWICK_LOG_FILE", &trace);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the command runs", || world.project().join("running").exists());
        Self { world, server, child, patch, trace }
    }

    /// Returns the pids of all processes except the supervisor: broker, worker, reaper and command.
    fn others(&self) -> Vec<u32> {
        let all = marked(self.world.mark().as_bytes());
        assert!(all.contains(&self.child.id()) && all.len() >= 5, "{all:?}");
        all.into_iter().filter(|pid| *pid != self.child.id()).collect()
    }

    fn finish(self) -> (World, Finished) {
        fs::write(self.world.project().join("gate"), "go\n").unwrap();
        let done = Finished::from(self.child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        (self.world, done)
    }
}

fn holds_key(bytes: &[u8]) -> bool {
    memmem::find(bytes, KEY.as_bytes()).is_some()
}

fn memory_holds_key(pid: u32) -> io::Result<bool> {
    let memory = fs::File::open(format!("/proc/{pid}/mem"))?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut readable = 0;
    for line in maps.lines().filter(|line| !line.contains("[v")) {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        // A mapping beyond the end of its file cannot be read, and contains nothing.
        if !rest.starts_with('r') || memory.read_exact_at(&mut bytes, start).is_err() {
            continue;
        }
        readable += bytes.len();
        if holds_key(&bytes) {
            return Ok(true);
        }
    }
    if readable == 0 && fs::read(format!("/proc/{pid}/maps")).unwrap_or_default().is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    assert!(readable > 64 << 10, "only {readable} bytes of process {pid} could be read");
    Ok(false)
}

fn files_with_key(root: &Path) -> Vec<PathBuf> {
    let mut open = vec![root.to_owned()];
    let mut found = vec![];
    while let Some(path) = open.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            // A file that an ending session removes meanwhile cannot contain the key.
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if meta.is_file() && holds_key(&fs::read(&path).unwrap_or_default()) {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_process_but_the_supervisor_holds_the_key() {
    if !geteuid().is_root() {
        skip!("the memory of processes that are not dumpable is for root alone");
    }
    for user in User::all() {
        let run = Running::start(user);
        assert!(memory_holds_key(run.child.id()).unwrap(), "the search finds what is there");
        let mut searched = 0;
        for pid in run.others() {
            // The worker that took the first snapshot may be ending just now.
            let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) else { continue };
            let Ok(found) = memory_holds_key(pid) else { continue };
            assert!(!found, "{user:?}: memory of {name}");
            searched += 1;
        }
        assert!(searched >= 4, "broker, worker, reaper, command: {searched}");
        run.finish();
    }
}

#[test]
fn no_environment_command_line_or_descriptor_holds_the_key() {
    for user in User::all() {
        let run = Running::start(user);
        let mut pids = run.others();
        pids.push(run.child.id());
        for pid in pids {
            for file in ["environ", "cmdline"] {
                let content = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                assert!(!holds_key(&content), "{user:?}: {file} of {pid}");
            }
            let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            for descriptor in descriptors.flatten() {
                let is_file = fs::metadata(descriptor.path()).is_ok_and(|meta| meta.is_file());
                let content = if is_file { fs::read(descriptor.path()).unwrap_or_default() } else { vec![] };
                assert!(!holds_key(&content), "{user:?}: {} of {pid}", descriptor.path().display());
            }
        }
        // Control: a variable that is not removed from the environment stays in it.
        let mut twin = run.world.command("sleep").arg("60").env("ANTHROPIC_API_KEY", KEY).spawn().unwrap();
        wait_until("the twin is executed", || {
            fs::read(format!("/proc/{}/environ", twin.id())).is_ok_and(|environment| holds_key(&environment))
        });
        twin.kill().unwrap();
        twin.wait().unwrap();
        run.finish();
    }
}

#[test]
fn supervisor_broker_and_worker_are_not_dumpable_and_nothing_leaves_a_core() {
    for user in User::all() {
        let run = Running::start(user);
        let command = run.world.pid_in("running");
        let mut pids = run.others();
        pids.push(run.child.id());
        for &pid in &pids {
            let Ok(limits) = fs::read_to_string(format!("/proc/{pid}/limits")) else { continue };
            let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
            let values: Vec<_> = core.split_whitespace().skip(4).take(2).collect();
            assert_eq!(values, ["0", "0"], "{user:?}: {core}");
        }
        if user == User::Plain {
            // Root owns the /proc files of a process that is not dumpable (proc(5)).
            let owner = |pid: u32| fs::metadata(format!("/proc/{pid}/environ")).ok().map(|meta| meta.uid());
            let names = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let ours = pids.iter().filter(|pid| {
                ["bailiwick", "bailiwick-worke", "sandbox-exec"].contains(&names(**pid).trim())
            });
            let owners: Vec<_> =
                ours.map(|pid| (names(*pid), owner(*pid))).filter(|(_, owner)| owner.is_some()).collect();
            assert!(owners.len() >= 3 && owners.iter().all(|(_, owner)| *owner == Some(0)), "{owners:?}");
            assert_eq!(owner(command), Some(user.uid()), "a command of the model may be traced by itself");
        }
        run.finish();
    }
}

#[test]
fn no_file_log_patch_or_output_holds_the_key() {
    for user in User::all() {
        let run = Running::start(user);
        let temps = run.world.temps();
        assert!(!temps.is_empty() && temps.iter().all(|temp| temp.is_dir()), "{temps:?}");
        assert!(temps.iter().all(|temp| files_with_key(temp).is_empty()));
        assert_eq!(files_with_key(run.world.root()), [] as [PathBuf; 0]);
        let header = run.server.requests()[0].header("x-api-key").unwrap().to_owned();
        assert_eq!(header, format!("[{} bytes]", KEY.len()), "the provider did get the key");
        let (patch, trace) = (run.patch.clone(), run.trace.clone());
        let (world, done) = run.finish();
        assert!(!holds_key(done.stdout.as_bytes()) && !holds_key(done.stderr.as_bytes()));
        assert_eq!(files_with_key(world.root()), [] as [PathBuf; 0]);
        assert!(fs::read_to_string(patch).unwrap().contains("new.txt"));
        assert!(fs::read_to_string(trace).unwrap().lines().count() > 20, "the trace says something");
        // Control: the search finds a file that contains the key.
        fs::write(world.home().join("leak"), KEY).unwrap();
        assert_eq!(files_with_key(world.root()), [world.home().join("leak")]);
    }
}

#[test]
fn a_server_that_says_the_key_back_is_not_quoted() {
    let world = World::new(User::Myself);
    let message = format!("invalid x-api-key: {KEY}");
    let server = serve([Reply::error(401, "authentication_error", &message)]);
    let trace = world.own().join("trace.log");
    let mut command = world.exec(&server, &[]);
    let done = Finished::of(command.env("BAILIWICK_LOG", "trace").env("BAILIWICK_LOG_FILE", &trace));
    assert_eq!(done.code, 6, "{}\n{}", done.stdout, done.stderr);
    assert!(!holds_key(done.stdout.as_bytes()), "{}", done.stdout);
    assert!(!holds_key(done.stderr.as_bytes()), "{}", done.stderr);
    assert_eq!(files_with_key(world.root()), [] as [PathBuf; 0]);
    let long = |text: &str| text.contains(&KEY[KEY.len() - 5..]);
    assert!(!long(&done.stdout), "more than four characters: {}", done.stdout);
    assert!(!long(&done.stderr), "more than four characters: {}", done.stderr);
}

/// Tests every simple way for a command to read the key file and the session log. Each way works without a sandbox.
#[test]
fn a_command_reads_neither_the_key_file_nor_the_log() {
    for user in User::all() {
        let world = World::new(user);
        let file = world.own().join("config/anthropic.key");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, KEY).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        world.give(file.parent().unwrap());
        world.give(&file);
        let script = format!(
            "key='{}'; log='{}'; for way in \"cat $key\" \"cat ../own/config/anthropic.key\" \"dd if=$key status=none\" \
             \"tar cf - $key\" \"cp $key stolen\" \"ln $key stolen\" \"grep -r sk-ant ../own/config\" \"cat /proc/self/root$key\" \
             \"find $log -name *.jsonl -exec cat {{}} +\" \"mv ../own/config mine\"; do \
             if bash -c \"$way\" > got 2> said && [ -s got -o -e stolen -o -e mine ]; then echo \"worked: $way\"; \
             else echo \"failed: $way\"; fi; [ ! -e mine ] || mv mine ../own/config; rm -f stolen; done",
            file.display(),
            world.own().join("state/sessions").display()
        );
        let server = model(&[("shell_exec", json!({"command": script}))]);
        let mut command = world.exec(&server, &["--mode", "auto"]);
        let done = Finished::of(command.env_remove("ANTHROPIC_API_KEY"));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let said = tool_results(&server, 1)[0]["content"].as_str().unwrap().to_owned();
        assert_eq!(said.matches("failed: ").count(), 10, "{user:?}: {said}");
        assert!(!said.contains("worked: "), "{user:?}: {said}");
        assert_eq!(files_with_key(&world.project()), [] as [PathBuf; 0]);
        // In the full tier a masked directory is on another file system. The confined mv made an empty copy before it
        // failed.
        let _ = fs::remove_dir_all(world.project().join("mine"));
        let twin = Finished::of(world.command("bash").args(["-c", &script]).current_dir(world.project()));
        assert_eq!(twin.stdout.matches("worked: ").count(), 10, "{user:?}: {}{}", twin.stdout, twin.stderr);
    }
}

/// Program that adds a key to a new session keyring, and executes its other arguments with that keyring (`add_key(2)`,
/// keyctl(2)).
const KEYRING: &str = "import ctypes, os, sys; c = ctypes.CDLL(None, use_errno=True); c.syscall(250, 1, None); \
    d = sys.argv[1].encode(); n = c.syscall(248, b'user', b'bailiwick-canary', d, len(d), -3); \
    sys.exit(9) if n < 0 else os.execv(sys.argv[2], sys.argv[2:])";

/// Program that searches the session keyring for the key, and reads the key.
const SEARCH: &str = "import ctypes; c = ctypes.CDLL(None, use_errno=True); \
    n = c.syscall(250, 10, -3, b'user', b'bailiwick-canary', 0); e = ctypes.get_errno(); b = ctypes.create_string_buffer(99); \
    m = c.syscall(250, 11, n, b, 99) if n > 0 else -1; print('errno', e, 'read', b.value.decode())";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_key_in_the_session_keyring_is_not_read_from_inside() {
    for user in User::all() {
        let world = World::new(user);
        let run = |command: &[&str]| {
            let mut python = world.command("python3");
            python.args(["-c", KEYRING, KEY]).args(command).current_dir(world.project());
            Finished::of(&mut python)
        };
        let twin = run(&["/usr/bin/env", "python3", "-c", SEARCH]);
        if twin.code == 9 {
            skip!("keys cannot be added to a keyring here");
        }
        assert!(twin.stdout.contains(KEY), "{user:?}: {}{}", twin.stdout, twin.stderr);
        let bailiwick = tests::Programs::get().path("bailiwick");
        let project = world.project();
        for tier in tests::tier::all() {
            let mut arguments = vec![bailiwick.to_str().unwrap(), "sandbox", "-C", project.to_str().unwrap()];
            arguments.extend(tests::tier::flags(tier));
            arguments.extend(["--", "python3", "-c", SEARCH]);
            let inside = run(&arguments);
            assert_eq!(inside.code, 0, "{}{}", inside.stdout, inside.stderr);
            assert_eq!(inside.stdout, "errno 1 read \n", "{tier}, {user:?}: EPERM");
        }
    }
}

#[test]
fn a_crashed_supervisor_leaves_no_core() {
    for user in User::all() {
        let world = World::new(user);
        let mut twin = world.command("bash");
        twin.args(["-c", "ulimit -c unlimited && kill -SEGV $$"]).current_dir(world.own());
        if !twin.status().unwrap().core_dumped() {
            skip!("nothing leaves a core here");
        }
        // SIGSEGV has a separate test, since the handler of Rust's runtime ignores the first such signal from another
        // process.
        for signal in [Signal::SIGABRT, Signal::SIGSYS] {
            let mut run = Running::start(user);
            kill(Pid::from_raw(run.child.id().cast_signed()), signal).unwrap();
            let status = run.child.wait().unwrap();
            assert_eq!((status.signal(), status.core_dumped()), (Some(signal as i32), false), "{user:?}");
            assert_eq!(files_with_key(run.world.root()), [] as [PathBuf; 0]);
        }
    }
}
