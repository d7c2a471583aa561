//! Tests that each worker has a private temp directory of its own, and reaches nobody else's, in both tiers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use ipc::confinement::Tier;
use nix::libc;
use serde_json::json;
use tests::replies::model;
use tests::world::tool_results;
use tests::{Finished, User, World, tier};

/// Program that has a secret in its `$TMPDIR`, and reports connections to its socket until the test ends it.
const VICTIM: &str = "import os, socket\n\
    place = os.environ['TMPDIR']; os.chdir(place)\n\
    open('secret', 'w').write('the other worker has this'); os.mkdir('d')\n\
    s = socket.socket(socket.AF_UNIX); s.bind('socket'); s.listen(); s.setblocking(False)\n\
    d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); d.bind('datagrams'); d.setblocking(False)\n\
    print('ready', flush=True); input()\n\
    def called(act):\n\
    \x20   try: act(); return True\n\
    \x20   except BlockingIOError: return False\n\
    kept = open('secret').read() if os.path.exists('secret') else 'nothing'\n\
    print(called(s.accept), called(lambda: d.recv(9)), kept, *sorted(os.listdir('.')))\n";

/// Program that attacks the directory in its argument. It prints each action with its error number; the last actions
/// remove the directory's content.
const ATTACK: &str = "import os, socket, sys\n\
    there = sys.argv[1]; own = os.environ.get('TMPDIR') or sys.argv[2]\n\
    open(own + '/mine', 'w').write('mine'); open(own + '/more', 'w').write('more')\n\
    def at(name): return there + '/' + name\n\
    def send(): socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', at('datagrams'))\n\
    above = os.path.dirname(there)\n\
    acts = dict(\n\
    \x20   open_up=lambda: os.chmod(above, 0o700),\n\
    \x20   neighbours=lambda: os.listdir(above),\n\
    \x20   close_up=lambda: os.chmod(above, 0o300),\n\
    \x20   names=lambda: os.listdir(there),\n\
    \x20   read=lambda: print(open(at('secret')).read()),\n\
    \x20   link_out=lambda: os.link(at('secret'), own + '/taken'),\n\
    \x20   connect=lambda: socket.socket(socket.AF_UNIX).connect(at('socket')),\n\
    \x20   send=send,\n\
    \x20   bind=lambda: socket.socket(socket.AF_UNIX).bind(at('bound')),\n\
    \x20   write=lambda: open(at('secret'), 'a').write('changed'),\n\
    \x20   create=lambda: open(at('new'), 'w').write('x'),\n\
    \x20   mkdir=lambda: os.mkdir(at('made')),\n\
    \x20   symlink=lambda: os.symlink('/', at('symlink')),\n\
    \x20   link_in=lambda: os.link(own + '/more', at('linked')),\n\
    \x20   rename_in=lambda: os.rename(own + '/mine', at('moved')),\n\
    \x20   chmod=lambda: os.chmod(at('secret'), 0o666),\n\
    \x20   utime=lambda: os.utime(at('secret')),\n\
    \x20   truncate=lambda: os.truncate(at('secret'), 0),\n\
    \x20   rename_out=lambda: os.rename(at('secret'), own + '/gone'),\n\
    \x20   unlink=lambda: os.unlink(at('socket')),\n\
    \x20   rmdir=lambda: os.rmdir(at('d')),\n\
    )\n\
    for name, act in acts.items():\n\
    \x20   try: act(); print(name, 0)\n\
    \x20   except OSError as error: print(name, error.errno)\n";

const ACTS: usize = 21;

/// World of a session that can be started, with the session's tier and the directory for Bailiwick's files.
struct Place<'a> {
    world: &'a World,
    tier: Tier,
    own: PathBuf,
}

impl Place<'_> {
    fn sandbox(&self, flags: &[&str]) -> Command {
        let mut command = self.world.sandbox(self.tier, flags, "python3");
        command.env("BAILIWICK_HOME", &self.own);
        command
    }

    fn temps(&self) -> Vec<PathBuf> {
        let locks = fs::read_dir(self.own.join("state/temps")).into_iter().flatten().flatten();
        let text = |lock: fs::DirEntry| String::from_utf8(fs::read(lock.path()).unwrap()).unwrap();
        locks.map(|lock| text(lock).split('\0').next().unwrap().into()).collect()
    }
}

/// Session that runs until it is asked to end.
struct Victim {
    child: Child,
    lines: BufReader<ChildStdout>,
    temp: PathBuf,
}

impl Victim {
    fn start(place: &Place<'_>, flags: &[&str]) -> Self {
        let before = place.temps();
        let mut command = place.sandbox(flags);
        let mut child =
            command.args(["-c", VICTIM]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let mut temps = place.temps();
        temps.retain(|temp| !before.contains(temp));
        Self { child, lines, temp: temps.remove(0) }
    }

    fn end(mut self) -> String {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut said = String::new();
        self.lines.read_line(&mut said).unwrap();
        self.child.wait().unwrap();
        said
    }
}

const UNHARMED: &str = "False False the other worker has this d datagrams secret socket\n";

/// Actions that may succeed in the floor tier. Rules protect contents but not names, so a directory can be listed if
/// its random name is known.
const NAMES: &[&str] = &["names"];

/// Checks that each action except those in `open` was refused, and that nothing was read.
fn check_refused(said: &str, place: &str, open: &[&str]) {
    assert!(!said.contains("the other worker"), "{place}: {said}");
    let done: Vec<_> = said.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert_eq!(done.len(), ACTS, "{place}: {said}");
    for (name, errno) in done {
        let errno = errno.parse::<i32>().unwrap();
        let is_denial = [libc::EACCES, libc::EPERM, libc::ENOENT, libc::EROFS, libc::EXDEV].contains(&errno);
        assert!(if open.contains(&name) { errno == 0 } else { is_denial }, "{place}: {name}: {errno}");
    }
}

fn check_control(place: &Place<'_>, victim: Victim) {
    let aside = place.world.root().join("aside");
    fs::create_dir_all(&aside).unwrap();
    place.world.give(&aside);
    let mut unconfined = place.world.command("python3");
    let done = Finished::of(unconfined.args(["-c", ATTACK]).arg(&victim.temp).arg(&aside));
    let missed = || done.stdout.lines().filter(|line| !line.ends_with(" 0")).collect::<Vec<_>>();
    let other = ["the other worker has this"];
    assert!(missed().iter().all(|line| other.contains(line)), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout.lines().count(), ACTS + 1, "{}", done.stderr);
    assert_ne!(victim.end(), UNHARMED);
    fs::remove_dir_all(aside).unwrap();
}

fn everywhere(test: impl Fn(Place<'_>)) {
    for tier in tier::all() {
        for user in User::all() {
            let world = World::new(user);
            let own = world.own();
            test(Place { world: &world, tier, own });
        }
    }
}

fn check_apart(place: &Place<'_>, flags: &[&str]) {
    let name = format!("{} {:?} {flags:?}", place.tier, place.world.user());
    let victim = Victim::start(place, flags);
    let mut other = place.sandbox(flags);
    let tried = Finished::of(other.args(["-c", ATTACK]).arg(&victim.temp)).expect(0);
    let has_mask = place.tier == Tier::Full && flags.is_empty();
    check_refused(&tried.stdout, &name, if has_mask { &[] } else { NAMES });
    assert_eq!(victim.end(), UNHARMED, "{name}");
    check_control(place, Victim::start(place, flags));
}

#[test]
fn no_session_reaches_the_temp_of_another_one() {
    everywhere(|place| check_apart(&place, &[]));
}

/// Tests the full tier with the host's `/tmp`, in which the temp directory keeps its path.
#[test]
fn nor_with_the_hosts_tmp() {
    everywhere(|place| check_apart(&place, &["--write", "/tmp"]));
}

/// Lock for two tests that use Bailiwick's directory in the system's temp directory, because a control in one of them
/// changes the directory's mode.
static SYSTEMS_OWN: Mutex<()> = Mutex::new(());

/// Tests a cache directory with so long a path that private temp directories are in the system's temp directory.
#[test]
fn nor_where_our_own_directories_are_far_down() {
    let _one = SYSTEMS_OWN.lock();
    everywhere(|place| {
        let own = place.own.join("a-directory-with-a-name-that-leaves-no-room");
        let place = Place { own, ..place };
        check_apart(&place, &[]);
        let victim = Victim::start(&place, &[]);
        assert!(victim.temp.starts_with("/tmp") || victim.temp.starts_with(std::env::temp_dir()));
        assert_eq!(victim.end(), UNHARMED);
    });
}

#[test]
fn no_tool_of_a_model_reaches_the_temp_of_another_session() {
    everywhere(|place| {
        let name = format!("{} {:?}", place.tier, place.world.user());
        let victim = Victim::start(&place, &[]);
        let there = |name: &str| victim.temp.join(name).display().to_string();
        place.world.file("attack.py", ATTACK);
        let attack = format!("python3 attack.py {}", victim.temp.display());
        let server = model(&[
            ("read_file", json!({"path": there("secret")})),
            ("write_file", json!({"path": there("secret"), "content": "changed"})),
            ("list_directory", json!({"path": victim.temp.parent().unwrap()})),
            ("shell_exec", json!({"command": attack})),
        ]);
        let mut exec = place.world.exec(&server, &["--mode", "auto"]);
        Finished::of(exec.args(tier::flags(place.tier)));
        let told = |request: usize| tool_results(&server, request)[0].clone();
        for request in 1..=3 {
            assert_eq!(told(request)["is_error"], json!(true), "{name}: {}", told(request));
        }
        let said = told(4)["content"].as_str().unwrap().to_owned();
        let said: Vec<_> = said.lines().filter(|line| is_answer(line)).collect();
        check_refused(&said.join("\n"), &name, if place.tier == Tier::Full { &[] } else { NAMES });
        assert_eq!(victim.end(), UNHARMED, "{name}");
    });
}

/// True if a line consists of an action's name and error number.
fn is_answer(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(name, errno)| {
        errno.parse::<i32>().is_ok() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    })
}

#[test]
fn temps_lie_in_one_directory_that_nobody_else_enters() {
    use std::os::unix::fs::MetadataExt;

    everywhere(|place| {
        let victim = Victim::start(&place, &[]);
        let above = victim.temp.parent().unwrap();
        assert_eq!(above, place.own.join("cache/temps"));
        for (directory, mode) in [(above, 0o300), (&*victim.temp, 0o700)] {
            let meta = fs::symlink_metadata(directory).unwrap();
            assert_eq!((meta.mode() & 0o7777, meta.uid()), (mode, place.world.user().uid()));
        }
        assert_eq!(victim.end(), UNHARMED);
        assert_eq!(fs::read_dir(place.own.join("cache/temps")).unwrap().count(), 0, "removed at the end");
    });
}

/// Tests root in another user's project. Its workers run as the owner, who cannot enter Bailiwick's directories.
#[test]
fn nor_do_workers_that_run_as_the_projects_owner() {
    if !nix::unistd::geteuid().is_root() {
        tests::skip!("only root works as another user");
    }
    let _one = SYSTEMS_OWN.lock();
    for tier in tier::all() {
        let owners = World::new(User::Plain);
        let roots = World::new(User::Myself);
        let sandbox = || {
            let mut command = roots.bailiwick(["sandbox", "-C"]);
            command.arg(owners.project()).args(tier::flags(tier)).args(["--", "python3"]);
            command
        };
        let mut child = sandbox();
        let mut child =
            child.args(["-c", VICTIM]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let temp = roots.temps().remove(0);
        assert!(temp.starts_with(Path::new("/tmp/bailiwick-0")), "{}", temp.display());
        let tried = Finished::of(sandbox().args(["-c", ATTACK]).arg(&temp)).expect(0);
        check_refused(&tried.stdout, &tier.to_string(), if tier == Tier::Full { &[] } else { NAMES });
        let victim = Victim { child, lines, temp };
        assert_eq!(victim.end(), UNHARMED);
    }
}

/// Tests a private temp directory within a write root: in a home, or in the system's temp directory if the home's path
/// is too long.
#[test]
fn a_private_temp_beneath_a_write_root_works_at_any_length_of_home() {
    const USES: &str = "f=$(mktemp) && echo kept > \"$f\" && mkdir $TMPDIR/d && cat \"$f\"";
    let _one = SYSTEMS_OWN.lock();
    everywhere(|place| {
        let root = place.world.root();
        for length in [20, 36, 37, 60, 90] {
            let name = "h".repeat(length.max(root.as_os_str().len() + 2) - root.as_os_str().len() - 1);
            let home = root.join(name);
            fs::create_dir_all(&home).unwrap();
            place.world.give(&home);
            let mut roots: Vec<_> = home.ancestors().skip(1).filter(|root| *root != Path::new("/")).collect();
            roots.push(Path::new("/tmp"));
            roots.dedup();
            for root in roots {
                let flags = ["--write", root.to_str().unwrap()];
                let mut command = place.world.sandbox(place.tier, &flags, "sh");
                command.env("BAILIWICK_HOME", &home).args(["-c", USES]);
                let run = Finished::of(&mut command);
                assert_eq!((run.code, &*run.stdout), (0, "kept\n"), "{length}, {flags:?}: {}", run.stderr);
                let is_told = run.stderr.contains("private temp directories are in /tmp/bailiwick-");
                // With the suffix `/cache/temps`, the path then exceeds 48 bytes.
                assert_eq!(is_told, home.as_os_str().len() > 36, "{length}: {}", run.stderr);
            }
        }
    });
}
