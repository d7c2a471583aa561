//! Tests gateways that are flooded, killed or compromised.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use boundary::monitor::gateway_confinement;
use ipc::confinement::{Confinement, Order, TierChoice};
use ipc::id::Generation;
use ipc::pipe::Outgoing;
use ipc::rights::Rights;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tests::world::KEY;
use tests::{Finished, Programs, alive, wait_until};

use crate::ground::{Ground, PRELUDE, PYTHON, in_full, on_a_machine, on_a_machine_at_length};

fn gateway_below(ancestor: u32) -> u32 {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found: Vec<_> = pids.filter(|pid| is_gateway(*pid) && is_below(*pid, ancestor)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn is_gateway(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).collect();
    words.first().is_some_and(|program| program.ends_with(b"bailiwick-worker"))
        && words.contains(&&b"--gateway"[..])
}

fn is_below(mut pid: u32, ancestor: u32) -> bool {
    while pid > 1 && pid != ancestor {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        pid = parent.and_then(|parent| parent.trim().parse().ok()).unwrap_or_default();
    }
    pid == ancestor
}

#[test]
fn without_its_gateway_a_command_gets_ordinary_errors() {
    on_a_machine("gateway::without_its_gateway_a_command_gets_ordinary_errors", |ground| {
        let script = "c = open_to('a.example', 7)
print(exchange(c, b'x'), flush=True)
sys.stdin.readline()
say(lambda: c.recv(9))
tcp('a.example', 7, b'y')
look_up('a.example')
print(os.system('true'))";
        let mut running = ground.start("a.example:7", script);
        assert_eq!(running.hear(), "b'x'");
        let gateway = gateway_below(running.child.id());
        kill(Pid::from_raw(gateway.try_into().unwrap()), Signal::SIGKILL).unwrap();
        running.tell("");
        let done = running.finish();
        assert_eq!(done.stdout, "ECONNRESET\nECONNRESET\n198.19.0.1\n0\n", "{}", done.stderr);
        assert!(
            done.code == 0 && done.stderr.contains("gateway to the hosts of --net has ended"),
            "{done:?}"
        );
    });
}

#[test]
fn a_gateway_ends_with_its_command_and_with_the_supervisor() {
    on_a_machine("gateway::a_gateway_ends_with_its_command_and_with_the_supervisor", |ground| {
        let script = "c = open_to('a.example', 7)
print(exchange(c, b'x'), flush=True)
if os.fork() == 0: time.sleep(1000)
sys.stdin.readline()";
        for is_killed in [false, true] {
            let mut running = ground.start("a.example:7", script);
            assert_eq!(running.hear(), "b'x'");
            let gateway = gateway_below(running.child.id());
            assert_eq!(ground.outside.open_connections(), 1);
            if is_killed {
                running.child.kill().unwrap();
            }
            let code = running.finish().code;
            assert_eq!(code, if is_killed { 128 + 9 } else { 0 });
            wait_until("the gateway has ended", || !alive(gateway));
            wait_until("its connections have ended", || ground.outside.open_connections() == 0);
        }
    });
}

#[test]
fn five_hundred_connections_at_once_are_served() {
    on_a_machine("gateway::five_hundred_connections_at_once_are_served", |ground| {
        let script = "all = [open_to('a.example', 7, 30) for _ in range(500)]
for c in all: c.sendall(b'x')
print(sum(c.recv(9) == b'x' for c in all))";
        let done = ground.python("a.example:7", script);
        assert_eq!((done.code, done.stdout.as_str()), (0, "500\n"), "{}", done.stderr);
        let came = ground.take().iter().filter(|packet| packet.starts_with("tcp 203.0.113.1:7")).count();
        assert_eq!(came, 500);
    });
}

/// Opens more connections to the silent host than a gateway keeps. The gateway resets further ones, and the others when
/// their time limit is over.
#[test]
fn connections_that_nobody_answers_hold_no_command_up() {
    on_a_machine_at_length("gateway::connections_that_nobody_answers_hold_no_command_up", |ground| {
        let script = "import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (3000, 3000))
all = []
resets = 0
for _ in range(2000):
    try: all.append(open_to('silent.example', 7))
    except ConnectionResetError: resets += 1
begun = time.monotonic()
look_up('a.example')
print(os.system('true'), time.monotonic() - begun < 5)
def ends(c):
    c.settimeout(30)
    try: return c.recv(1)
    except ConnectionResetError: return 'reset'
print({ends(c) for c in all}, len(all) + resets)
tcp('a.example', 7, b'goes on')";
        let done = ground.python("a.example:7,silent.example:7", script);
        assert_eq!(done.stdout, "198.19.0.2\n0 True\n{'reset'} 2000\nb'goes on'\n", "{}", done.stderr);
        let told = "could not reach silent.example:7";
        assert!(done.code == 0 && done.stderr.matches(told).count() == 1, "{}", done.stderr);
    });
}

/// Runs a Python script with the access of a gateway, as a compromised gateway would.
fn taken_over(ground: &Ground, tier: TierChoice, script: &str) -> Finished {
    let agent = Confinement { tier, ..Confinement::new(Rights::default(), Path::new("/").into()) };
    under(ground, gateway_confinement(Path::new(PYTHON), &agent), script)
}

/// Runs a Python script with this confinement.
pub(crate) fn under(ground: &Ground, confinement: Confinement, script: &str) -> Finished {
    let order = Order { confinement, arguments: vec!["-c".to_owned(), format!("{PRELUDE}{script}")] };
    let path = ground.world.root().join("order");
    Outgoing::new(File::create(&path).unwrap(), Generation(0)).send(&order).unwrap();
    let mut command = ground.world.command("sh");
    command.args(["-c", "exec \"$0\" --rights-fd 3 -- \"$1\" 3< \"$2\""]);
    command.arg(Programs::get().path("sandbox-exec")).arg(PYTHON).arg(path);
    Finished::of(&mut command)
}

/// Creates files with a secret text. A gateway must not be able to read them.
pub(crate) fn secrets(ground: &Ground) -> Vec<PathBuf> {
    let places =
        ["home/.ssh/id_ed25519", "home/.config/key", "own/config/key", "own/state/log", "project/code"];
    let places: Vec<_> = places.into_iter().map(|place| ground.world.root().join(place)).collect();
    for place in &places {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, KEY).unwrap();
        for path in place.ancestors().take_while(|path| *path != ground.world.root()) {
            ground.world.give(path);
        }
    }
    places
}

#[test]
fn a_gateway_that_was_taken_over_reaches_the_internet_and_nothing_else() {
    in_full("gateway::a_gateway_that_was_taken_over_reaches_the_internet_and_nothing_else", |ground| {
        let secrets = secrets(ground);
        for tier in [TierChoice::Full, TierChoice::Floor] {
            let hosts = ["127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1", "203.0.113.254"];
            let hosts = [&hosts[..], &["10.7.7.7", "169.254.7.7", "169.254.169.254"]].concat();
            let fast = "MSG_FASTOPEN = 0x20000000
def fast(host, port):
    family, _, _, _, to = s.getaddrinfo(host, port, type=s.SOCK_STREAM)[0]
    say(lambda: s.socket(family).sendto(b'x', MSG_FASTOPEN, to))
";
            for (act, done) in
                [("tcp(host, 7, b'x')", "b'x'\n"), ("udp(host, 7)", "8\n"), ("fast(host, 7)", "1\n")]
            {
                let acts = format!("{fast}for host in {hosts:?}: {act}");
                ground.take();
                assert_eq!(taken_over(ground, tier, &acts).stdout, "EACCES\n".repeat(hosts.len()), "{act}");
                assert_eq!(ground.take(), Vec::<String>::new(), "{act}");
                assert_eq!(ground.unconfined(&acts).stdout, done.repeat(hosts.len()), "{act}");
            }
            assert_eq!(taken_over(ground, tier, "tcp('a.example', 7, b'x')").stdout, "b'x'\n", "{tier:?}");
            let acts = format!("for path in {secrets:?}: say(lambda: open(path).read())");
            let read = taken_over(ground, tier, &acts).stdout;
            let are_denied = read.lines().all(|line| ["EACCES", "ENOENT"].contains(&line));
            assert!(are_denied && read.lines().count() == secrets.len(), "{tier:?}: {read}");
            assert_eq!(ground.unconfined(&acts).stdout, format!("{KEY}\n").repeat(secrets.len()));
            writes_nothing(ground, tier);
            acts_on_nobody(ground, tier);
        }
    });
}

fn writes_nothing(ground: &Ground, tier: TierChoice) {
    let root = ground.world.root().display().to_string();
    let inside = ["home", "own", "project"].map(|name| format!("{root}/{name}"));
    let others = ["/", "/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/lib", "/run"].map(str::to_owned);
    let all: Vec<_> = inside.iter().chain(&others).collect();
    let acts = |places: &[&String]| {
        format!("for place in {places:?}: say(lambda: open(place + '/planted', 'w').write('x'))")
    };
    let written = taken_over(ground, tier, &acts(&all)).stdout;
    assert_eq!(written.lines().count(), all.len(), "{tier:?}: {written}");
    for (directory, said) in all.iter().zip(written.lines()) {
        // In the full tier, `/dev/shm` is private to the gateway, and disappears with it.
        let is_own = tier == TierChoice::Full && *directory == "/dev/shm";
        let is_denied = said.starts_with('E') || is_own && said == "1";
        assert!(is_denied && !Path::new(directory).join("planted").exists(), "{tier:?}: {directory}: {said}");
    }
    let inside: Vec<_> = inside.iter().collect();
    assert_eq!(ground.unconfined(&acts(&inside)).stdout, "1\n".repeat(inside.len()));
    for directory in inside {
        fs::remove_file(Path::new(directory).join("planted")).unwrap();
    }
}

fn acts_on_nobody(ground: &Ground, tier: TierChoice) {
    let mut victim = ground.world.command("sleep").arg("1000").spawn().unwrap();
    let pid = victim.id();
    let seize = "import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def seize(pid):
    PTRACE_SEIZE = 0x4206
    if libc.ptrace(PTRACE_SEIZE, pid, 0, 0): raise OSError(ctypes.get_errno(), 'ptrace')
    return 'seized'";
    let script = format!(
        "{seize}\nsay(lambda: seize({pid}))\nsay(lambda: len(open('/proc/{pid}/environ').read()) > 0)\n\
         say(lambda: os.kill({pid}, 9))"
    );
    let tried = taken_over(ground, tier, &script);
    let lines: Vec<_> = tried.stdout.lines().collect();
    let are_denied = lines.iter().all(|line| ["ESRCH", "EPERM", "EACCES", "ENOENT"].contains(line));
    assert!(lines.len() == 3 && are_denied && alive(pid), "{tier:?}: {tried:?}");
    let freely = ground.unconfined(&script);
    assert_eq!(freely.stdout, "seized\nTrue\nNone\n", "{freely:?}");
    victim.wait().unwrap();
    let runs = "say(lambda: subprocess.run(['/usr/bin/env', 'true']).returncode)";
    assert_eq!(taken_over(ground, tier, runs).stdout, "EACCES\n", "{tier:?}");
    assert_eq!(ground.unconfined(runs).stdout, "0\n");
}

/// Measures the median time of a connection, and the time of 64 MiB, with the gateway and without it.
#[test]
#[ignore = "a measurement"]
fn times_of_connections_and_of_64_mebibytes() {
    in_full("gateway::times_of_connections_and_of_64_mebibytes", |ground| {
        let script = "times = []
for _ in range(200):
    begun = time.monotonic()
    exchange(open_to('a.example', 7), b'x')
    times.append(time.monotonic() - begun)
print('echo', round(sorted(times)[100] * 1e6), 'us')
for _ in range(3):
    c = open_to('a.example', 80)
    begun = time.monotonic()
    c.sendall(http('/big', 'a.example'))
    left = 64 << 20
    while left > 0: left -= len(c.recv(1 << 20))
    print('64 MiB', round((time.monotonic() - begun) * 1e3), 'ms')";
        for done in [ground.unconfined(script), ground.python("a.example:7,a.example:80", script)] {
            eprintln!("measured: {:?} {}", ground.world.user(), done.stdout.replace('\n', " · "));
        }
    });
}
