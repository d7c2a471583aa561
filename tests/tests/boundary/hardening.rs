//! Tests attacks of commands on the supervisor, in both tiers: on its memory, its descriptors and its crash dumps. Also
//! tests the descriptors of all processes below the supervisor.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ipc::confinement::Tier;
use memchr::memmem;
use model::replay::ReplayServer;
use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::{Value, json};
use tests::replies::model;
use tests::world::KEY;
use tests::{Finished, Programs, User, World, alive, marked, skip, tier, wait_until};

/// Number of a descriptor of the key file in the attacked process, as an editor or a shell may leave one open.
const HELD: &str = "9";

/// Attacks. `$P` stands for a pid, and `$A` for the address of the key.
const ACTS: &[&str] = &[
    "vm-read $P $A",
    "proc-mem $P $A",
    "pidfd-getfd $P 9",
    "proc $P fd/9",
    "proc $P environ",
    "proc-links $P fd/9",
    "proc $P maps",
    "ptrace-attach $P",
    "ptrace-seize $P",
    "kcmp $P",
    "vm-write $P $A",
];

/// Number of attacks, at the beginning of [`ACTS`], that read the key.
const READS: usize = 5;

/// Part of the key that an attack reads.
const READ: &str = KEY.split_at(20).0;

fn everywhere() -> Vec<(Tier, User)> {
    tier::all().into_iter().flat_map(|tier| User::all().into_iter().map(move |user| (tier, user))).collect()
}

fn key_file(world: &World) -> PathBuf {
    let file = world.own().join("config/anthropic.key");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, KEY).unwrap();
    world.give(file.parent().unwrap());
    world.give(&file);
    file
}

/// Returns a command that opens `file` as descriptor [`HELD`], and then executes `command`.
fn holding(world: &World, file: &Path, command: &Command) -> Command {
    let mut bash = world.command("bash");
    bash.args(["-c", &format!("exec {HELD}<\"$0\"; exec \"$@\"")]).arg(file);
    bash.arg(command.get_program()).args(command.get_args()).env("CANARY", "kept");
    bash.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bash
}

/// True if a process that this user may inspect has the file open.
fn is_open(file: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let descriptors = processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok()).flatten();
    descriptors.flatten().any(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|link| link == file))
}

/// Returns an address of these bytes in a process's memory. `None` if they are not there.
fn address(pid: u32, sought: &[u8]) -> Option<u64> {
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines().filter(|line| line.contains(" rw")).find_map(|line| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        memory.read_exact_at(&mut bytes, start).ok()?;
        let at = memmem::find(&bytes, sought)?;
        Some(start + u64::try_from(at).unwrap())
    })
}

/// Run whose command waits for a line, and then continues.
struct Run {
    world: World,
    child: Child,
    _server: ReplayServer,
}

impl Run {
    fn start(tier: Tier, user: User, then: &str) -> Self {
        let world = World::new(user);
        let command = format!("mkfifo gate; echo > running; read P A < gate; {then}");
        let server = model(&[("shell_exec", json!({"command": command}))]);
        let exec = world.exec(&server, &[&["--mode", "auto"], tier::flags(tier)].concat());
        let mut exec = holding(&world, &key_file(&world), &exec);
        let child = exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let running = world.project().join("running");
        wait_until("the command waits", || running.exists() && !is_open(&running));
        Self { world, child, _server: server }
    }

    fn finish(self, line: &str) -> (World, Finished) {
        fs::write(self.world.project().join("gate"), format!("{line}\n")).unwrap();
        (self.world, Finished::from(self.child.wait_with_output().unwrap()).expect(0))
    }
}

/// Returns the error number and the data of each attack.
fn tried(lines: &str) -> Vec<(i32, String)> {
    let one = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let errno = i32::try_from(line["errno"].as_i64().unwrap()).unwrap();
        (errno, line["said"].as_str().unwrap().to_owned())
    };
    let tried: Vec<_> = lines.lines().map(one).collect();
    assert_eq!(tried.len(), ACTS.len(), "{lines}");
    tried
}

fn probe() -> String {
    format!("{} {}", Programs::get().path("probe").display(), ACTS.join(" -- "))
}

/// Runs the attacks without a sandbox, as the world's user.
fn unconfined(world: &World, pid: u32, address: &str) -> Vec<(i32, String)> {
    let mut bash = world.command("bash");
    bash.args(["-c", &probe()]).env("P", pid.to_string()).env("A", address);
    tried(&Finished::of(&mut bash).expect(0).stdout)
}

#[test]
fn a_command_reads_neither_memory_nor_descriptors_of_the_supervisor() {
    if !geteuid().is_root() {
        skip!("the memory of processes that are not dumpable is for root alone");
    }
    for (tier, user) in everywhere() {
        let run = Run::start(tier, user, &format!("{} > tried", probe()));
        let pid = run.child.id();
        let place = address(pid, KEY.as_bytes()).expect("the supervisor holds the key");
        if user == User::Plain {
            // The attacks fail even without a sandbox, since the attacker is not root.
            for (act, (errno, said)) in ACTS.iter().zip(unconfined(&run.world, pid, &place.to_string())) {
                assert!([libc::EPERM, libc::EACCES].contains(&errno), "unconfined, {act}: {errno} {said}");
            }
        }
        let (world, done) = run.finish(&format!("{pid} {place}"));
        let denied: &[i32] = match tier {
            // There is no such process.
            Tier::Full => &[libc::EPERM, libc::EACCES, libc::ENOENT, libc::ESRCH],
            Tier::Floor | Tier::FloorUnmediated => &[libc::EPERM, libc::EACCES],
        };
        for (act, (errno, said)) in ACTS.iter().zip(tried(&world.read("tried"))) {
            assert!(denied.contains(&errno), "{tier}, {user:?}, {act}: {errno} {said}\n{}", done.stderr);
        }
        assert!(!world.read("tried").contains(READ), "{tier}, {user:?}");
    }
}

/// Control: each attack succeeds against an unprotected process.
#[test]
fn the_same_acts_read_an_ordinary_process() {
    for user in User::all() {
        let world = World::new(user);
        let mut victim = world.command(Programs::get().path("probe"));
        victim.arg("victim").env("VICTIM", KEY);
        let mut victim = holding(&world, &key_file(&world), &victim);
        let mut child = victim.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place = line.split_once(' ').unwrap().0;
        let tried = unconfined(&world, child.id(), place);
        child.kill().unwrap();
        child.wait().unwrap();
        for (index, (act, (errno, said))) in ACTS.iter().zip(tried).enumerate() {
            assert_eq!(errno, 0, "{user:?}, {act}: {said}");
            let read = said.contains(READ) || said.contains(tests::probe::victim::SECRET);
            assert!(read || index >= READS, "{user:?}, {act} reads it: {said:?}");
        }
    }
}

/// Targets of the links in `/proc/PID/fd`, by descriptor number.
type Descriptors = BTreeMap<u32, String>;

fn descriptors(pid: u32) -> Descriptors {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let link = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, fs::read_link(entry.path()).ok()?.as_os_str().to_string_lossy().into_owned()))
    };
    open.filter_map(link).collect()
}

/// Descriptors that one kind of process may have: a row of the table in docs/design/processes.md.
struct Row {
    process: &'static str,
    kinds: &'static [&'static str],
    /// True if the process may also open directories: write roots, its control group, and `/proc/PID/fd`.
    trees: bool,
    /// Number of the process's pipes to the supervisor.
    to_the_supervisor: usize,
}

const SPARE: Row = Row { process: "spare", kinds: &["pipe"], trees: false, to_the_supervisor: 5 };
const STUB: Row =
    Row { process: "stub", kinds: &["/dev/null", "pipe", "socket"], trees: false, to_the_supervisor: 1 };
const BROKER: Row = Row {
    process: "init or broker",
    kinds: &[
        "/dev/null",
        "pipe",
        "socket",
        "anon_inode:[eventpoll]",
        "anon_inode:[signalfd]",
        "anon_inode:seccomp notify",
        "anon_inode:[landlock-ruleset]",
        // Pidfds of threads whose system calls the broker has mediated. Newer kernels (pidfs) use the second name.
        "anon_inode:[pidfd]",
        "pidfd",
    ],
    trees: true,
    to_the_supervisor: 1,
};
const WORKER: Row = Row {
    process: "worker",
    kinds: &[
        "/dev/null",
        "pipe",
        "socket",
        "anon_inode:[eventpoll]",
        "anon_inode:[eventfd]",
        "anon_inode:[landlock-ruleset]",
    ],
    trees: false,
    to_the_supervisor: 3,
};
const REAPER: Row =
    Row { process: "reaper", kinds: &["/dev/null", "pipe"], trees: false, to_the_supervisor: 0 };
const COMMAND: Row =
    Row { process: "command", kinds: &["/dev/null", "pipe"], trees: false, to_the_supervisor: 0 };

impl Row {
    fn of(pid: u32, open: &Descriptors) -> &'static Self {
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        match program.file_name().and_then(OsStr::to_str) {
            Some("sandbox-exec") if is_spare(pid) => &SPARE,
            Some("sandbox-exec") if open.values().any(|link| link.contains("seccomp")) => &BROKER,
            Some("sandbox-exec") => &STUB,
            Some("bailiwick-worker") if is_reaper(pid) => &REAPER,
            Some("bailiwick-worker") => &WORKER,
            _ => &COMMAND,
        }
    }

    fn check(&self, world: &World, open: &Descriptors, supervisor: &BTreeSet<&String>) {
        for link in open.values() {
            // "pipe:[17]" and "anon_inode:[eventfd]": the number says which.
            let kind =
                link.split_once(":[").filter(|_| !link.starts_with("anon")).map_or(&**link, |(kind, _)| kind);
            let known = self.kinds.contains(&kind) || self.trees && is_tree(world, Path::new(kind));
            assert!(known, "{} holds {link}: {open:?}", self.process);
        }
        let shared: BTreeSet<_> =
            open.values().filter(|link| link.starts_with("pipe") || link.starts_with("socket")).collect();
        let shared = shared.intersection(supervisor).count();
        assert_eq!(shared, self.to_the_supervisor, "{}: {open:?} of {supervisor:?}", self.process);
    }
}

fn is_reaper(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"bailiwick-worker\0--reap\0")
}

/// True if a sandbox-exec still waits for its order: all others have a child.
fn is_spare(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).is_ok_and(|children| children.is_empty())
}

/// True if a broker may have this open: a write root, `/proc/PID/fd`, or its control group.
fn is_tree(world: &World, path: &Path) -> bool {
    let own = |root: &str| path == Path::new(root);
    let named = |start: &str| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    let list = path.starts_with("/proc") && path.ends_with("fd");
    let group = path.starts_with("/sys/fs/cgroup") && named("bailiwick-");
    list || group
        || own("/tmp")
        || own("/dev/shm")
        || path == world.project()
        || path.starts_with(world.own())
}

#[test]
fn nothing_below_the_supervisor_holds_what_the_descriptor_table_does_not_give_it() {
    if !geteuid().is_root() {
        skip!("the memory of processes that are not dumpable is for root alone");
    }
    for (tier, user) in everywhere() {
        let run = Run::start(tier, user, "true");
        let pid = run.child.id();
        let supervisor = descriptors(pid);
        assert!(supervisor[&9].ends_with("anthropic.key"), "the list shows what is open: {supervisor:?}");
        let all = || marked(run.world.mark().as_bytes()).into_iter().filter(|other| *other != pid);
        let expected: &[_] = match tier {
            Tier::Full => &["command", "init or broker", "reaper", "spare", "stub", "worker"],
            Tier::Floor | Tier::FloorUnmediated => {
                &["command", "init or broker", "reaper", "spare", "worker"]
            }
        };
        let rows = || all().map(|below| (below, Row::of(below, &descriptors(below)))).collect::<Vec<_>>();
        let processes = || {
            let mut processes: Vec<_> = rows().into_iter().map(|(_, row)| row.process).collect();
            processes.sort_unstable();
            processes
        };
        wait_until("the next sandbox-exec waits", || processes() == expected);
        for (below, row) in rows() {
            row.check(&run.world, &descriptors(below), &supervisor.values().collect());
        }
        run.finish("");
    }
}

#[test]
fn a_command_of_the_sandbox_is_given_three_descriptors() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let done = Finished::of(world.sandbox(tier, &[], "ls").arg("/proc/self/fd")).expect(0);
        // `ls` reads the list by the fourth descriptor.
        assert_eq!(done.stdout, "0\n1\n2\n3\n", "{tier}, {user:?}");
    }
}

/// Makes a stopped thread continue at address 0, so that it faults.
#[cfg(target_arch = "x86_64")]
fn make_fault(pid: u32) {
    let (pid, nothing) = (pid.cast_signed(), std::ptr::null_mut::<libc::c_void>());
    // SAFETY: a place for registers, all of them integers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the process is a child of ours; registers are read into, and written from, a valid place.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_ATTACH, pid, nothing, nothing), 0);
        assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
        assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, pid, nothing, &raw mut registers), 0);
    }
    registers.rip = 0;
    // Prevents the restart of a system call, which would change the address.
    registers.orig_rax = u64::MAX;
    // SAFETY: as above.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SETREGS, pid, nothing, &raw const registers), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, pid, nothing, nothing), 0);
    }
}

fn holds_key(root: &Path) -> bool {
    let mut grep = Command::new("grep");
    let found = grep.args(["-raq", "--devices=skip", KEY]).arg(root).status().unwrap().code();
    assert!(matches!(found, Some(0 | 1)), "{found:?}");
    found == Some(0)
}

/// Tests two causes of a crash: a fault of the supervisor, and a fault's signal from another process. The handler of
/// Rust's runtime ignores the first signal of the second kind, and then restores the default action.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_fault_in_the_supervisor_leaves_neither_core_nor_key() {
    if !geteuid().is_root() {
        skip!("the memory of processes that are not dumpable is for root alone");
    }
    for user in User::all() {
        let place = World::new(user);
        let mut twin = place.command("sleep");
        twin.arg("60").current_dir(place.own());
        // SAFETY: setrlimit is async-signal-safe.
        unsafe {
            twin.pre_exec(|| Ok(setrlimit(Resource::RLIMIT_CORE, libc::RLIM_INFINITY, libc::RLIM_INFINITY)?));
        }
        let mut twin = twin.spawn().unwrap();
        make_fault(twin.id());
        if !twin.wait().unwrap().core_dumped() {
            skip!("nothing leaves a core here");
        }
        let fault: [fn(u32); 2] = [make_fault, |pid| {
            let pid = Pid::from_raw(pid.cast_signed());
            // The first signal only restores the default action; the second one ends the process.
            while kill(pid, Signal::SIGSEGV).is_ok() && alive(pid.as_raw().cast_unsigned()) {}
        }];
        for fault in fault {
            let run = Run::start(tier::all()[0], user, "true");
            fs::remove_file(run.world.own().join("config/anthropic.key")).unwrap();
            fault(run.child.id());
            let done = run.child.wait_with_output().unwrap();
            assert_eq!(
                (done.status.signal(), done.status.core_dumped()),
                (Some(libc::SIGSEGV), false),
                "{user:?}"
            );
            let said =
                format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert!(!said.contains(READ), "{said}");
            wait_until("nothing of it lives", || marked(run.world.mark().as_bytes()).is_empty());
            assert!(!holds_key(run.world.root()));
            fs::write(run.world.home().join("leak"), KEY).unwrap();
            assert!(holds_key(run.world.root()), "the search finds what is there");
        }
    }
}
