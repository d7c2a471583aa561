//! Tests attacks of several steps: inherited descriptors, read-only commands, signals to all processes, and listeners.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};

use ipc::confinement::Tier;
use nix::libc::{EACCES, EBADF, ENOENT, EPERM, EROFS};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::replies::model;
use tests::world::tool_results;
use tests::{Finished, Programs, User, World, alive, tier, wait_until};

use crate::attack::Tried;
use crate::everywhere;
use crate::victim::Victim;

/// Actions of a read-only command. The first ones are on files that the session may otherwise write.
const OF_A_READER: &str = "chmod {p}/mine -- futimens {p}/mine -- setxattr {p}/mine -- chown {p}/mine {uid} {gid} \
    -- write {p}/mine -- append {p}/mine -- truncate {p}/mine -- write {p}/taken -- unlink {p}/mine \
    -- rename {p}/mine {p}/moved -- link {p}/mine {p}/taken -- symlink x {p}/taken -- mkdir {p}/taken \
    -- chmod {o}/file -- futimens {o}/file -- setxattr {o}/file -- chown {o}/file {uid} {gid} \
    -- tcp {tcp4} -- unix-stream {o}/stream";

/// Tests a command that declares to read only: it changes not even modes or times of files.
#[test]
fn a_command_that_only_reads_changes_nothing() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let victim = Victim::new(&world);
        let probe = Programs::get().path("probe");
        let acts = victim.aim(OF_A_READER, &world).join(" ");
        let command = format!("{} {acts}", probe.display());
        // `bailiwick sandbox` with read access shows what a read-only command can do.
        let mut sandbox = world.sandbox(tier, &["--access", "read", "--net", "on"], "bash");
        let shown = Tried::all(&Finished::of(sandbox.args(["-c", &command])).stdout);
        let call = |access: &str| ("shell_exec", json!({"command": command, "access": access}));
        let server = model(&[call("read"), call("standing")]);
        let mut exec = world.exec(&server, &["--mode", "auto", "--net", "on"]);
        let done = Finished::of(exec.args(tier::flags(tier)));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let tried = |request: usize| {
            let said = tool_results(&server, request)[0]["content"].as_str().unwrap().to_owned();
            said.lines().filter(|line| line.starts_with('{')).map(Tried::of).collect::<Vec<_>>()
        };
        for reading in [tried(1), shown] {
            assert_eq!(reading.len(), 19, "{reading:?}");
            let denied = |tried: &Tried| tried.is(&[EPERM, EACCES, EROFS]);
            assert!(reading.iter().all(denied), "{tier} {user:?}: {reading:?}");
        }
        // Control: with the standing rights, the same command changes at least the files in the project.
        let standing = tried(2);
        let allowed = standing.iter().filter(|tried| tried.errno == 0).count();
        assert!(allowed >= 9, "{tier} {user:?}: {standing:?}");
    }
}

#[test]
fn an_inherited_descriptor_does_not_get_through() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let victim = Victim::new(&world);
        let probe = Programs::get().path("probe").display().to_string();
        let bailiwick = Programs::get().path("bailiwick").display().to_string();
        let acts = "write-descriptor 9 -- read-descriptor 8 -- through-directory-descriptor 7 new";
        let run = |prefix: &str| {
            let script =
                format!("exec 9>>\"$0/file\" 8<\"$0/hidden\" 7<\"$0\"; exec {prefix} {probe} {acts}");
            let mut bash = world.command("bash");
            let outside = world.root().join("outside");
            let done = Finished::of(bash.arg("-c").arg(script).arg(outside).current_dir(world.project()));
            assert_eq!(done.code, 0, "{}", done.stderr);
            (Tried::all(&done.stdout), done.stdout)
        };
        let (tried, said) = run(&format!("{bailiwick} sandbox {} --", tier::flags(tier).join(" ")));
        let errnos: Vec<_> = tried.iter().map(|tried| tried.errno).collect();
        assert_eq!(errnos, [EBADF, ENOENT, EBADF].map(i64::from), "{tier} {user:?}");
        assert_eq!(victim.harm(&said), None);
        let (tried, said) = run("");
        assert!(tried.iter().all(|tried| tried.errno == 0), "{said}");
        assert!(victim.harm(&said).is_some());
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Tests a signal to all processes: a stopped process outside of the sandbox is not continued.
#[test]
fn a_signal_to_everybody_stays_inside() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let mut stopped = world.command("sleep").arg("99").spawn().unwrap();
        let pid = Pid::from_raw(stopped.id().cast_signed());
        kill(pid, Signal::SIGSTOP).unwrap();
        wait_until("it has stopped", || is_stopped(stopped.id()));
        // Control in the sandbox: the command's own stopped child continues and ends.
        let script = "sleep 0.1 & kill -STOP $!; until grep -q '^State:.T' /proc/$!/status; do :; done; \
            kill -CONT -1; wait $!; echo continued $?";
        let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", script]));
        assert_eq!(done.stdout, "continued 0\n", "{tier} {user:?}: {}", done.stderr);
        assert!(is_stopped(stopped.id()), "{tier} {user:?}");
        // Control without a sandbox.
        let done = Finished::of(world.command("kill").args(["-CONT", &pid.to_string()]));
        assert_eq!(done.code, 0, "{}", done.stderr);
        wait_until("it runs on", || !is_stopped(stopped.id()));
        assert!(alive(stopped.id()));
        stopped.kill().unwrap();
        stopped.wait().unwrap();
    }
}

const SERVER: &str = "import socket\n\
    for family, host in (socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::'):\n\
    \x20   s = socket.socket(family); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
    \x20   if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)\n\
    \x20   s.bind((host, 0)); s.listen(); print(s.getsockname()[1], flush=True); globals()[host] = s\n\
    input()\n\
    for host in '0.0.0.0', '::':\n\
    \x20   s = globals()[host]; s.settimeout(0.05)\n\
    \x20   try: print('reached', s.accept()[0].recv(9))\n\
    \x20   except (TimeoutError, BlockingIOError): print('alone')\n";

/// Starts a server, connects to it from the host, and returns what the server printed.
fn visit(command: &mut Command) -> Vec<String> {
    let mut child =
        command.arg("-c").arg(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    for host in ["127.0.0.1", "::1"] {
        let Some(port) = lines.next() else { break };
        let address = (host, port.parse().unwrap());
        if let Ok(mut stream) = TcpStream::connect(address) {
            // The server may close the connection at once. Its own output shows that it was reached.
            let _ = stream.write_all(b"visitor");
        }
    }
    let _ = child.stdin.take().unwrap().write_all(b"\n");
    let seen = lines.collect();
    child.wait().unwrap();
    seen
}

/// Tests a listener in the sandbox. The host cannot reach it: another namespace or the broker prevents that.
#[test]
fn what_listens_inside_is_not_reached_from_outside() {
    for user in User::all() {
        let world = World::new(user);
        let twin = visit(&mut world.command("python3"));
        assert_eq!(twin, ["reached b'visitor'", "reached b'visitor'"], "{user:?}");
        for tier in tier::all() {
            for net in ["off", "on"] {
                let seen = visit(&mut world.sandbox(tier, &["--net", net], "python3"));
                assert_eq!(seen, ["alone", "alone"], "{tier}, net {net}, {user:?}");
            }
        }
    }
}

/// Program that receives datagrams on three sockets: bound to all addresses, bound to one, and bound by the kernel. It
/// then sends a datagram to each of them.
const RECEIVER: &str = "import socket\n\
    def unasked(s):\n\
    \x20   try: s.send(b'x')\n\
    \x20   except OSError: pass\n\
    binds = [lambda s: s.bind(('0.0.0.0', 0)), lambda s: s.bind(('127.0.0.1', 0)), unasked]\n\
    all = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in binds]\n\
    for bind, s in zip(binds, all): bind(s); s.setblocking(False); print(s.getsockname()[1], flush=True)\n\
    input()\n\
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
    for s in all:\n\
    \x20   try: own.sendto(b'own', ('127.0.0.1', s.getsockname()[1]))\n\
    \x20   except OSError: pass\n\
    \x20   heard = []\n\
    \x20   try:\n\
    \x20       while True: heard.append(s.recv(9))\n\
    \x20   except BlockingIOError: print(*heard)\n";

/// Starts a receiver, sends to it from the host, and returns what it printed.
fn send_to(command: &mut Command) -> Vec<String> {
    let mut child =
        command.arg("-c").arg(RECEIVER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let visitor = UdpSocket::bind("0.0.0.0:0").unwrap();
    for port in lines.by_ref().take(3) {
        visitor.send_to(b"visitor", ("127.0.0.1", port.parse().unwrap())).unwrap();
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let heard = lines.collect();
    child.wait().unwrap();
    heard
}

/// Tests receivers with the network off. Nobody, even in the sandbox, reaches an address that the kernel chose.
#[test]
fn what_receives_datagrams_inside_hears_nobody_outside() {
    for user in User::all() {
        let world = World::new(user);
        let twin = send_to(&mut world.command("python3"));
        assert_eq!(twin, ["b'visitor' b'own'"; 3], "{user:?}");
        for tier in tier::all() {
            let heard = send_to(&mut world.sandbox(tier, &["--net", "off"], "python3"));
            let unasked = if tier == Tier::Full { "b'own'" } else { "" };
            assert_eq!(heard, ["b'own'", "b'own'", unasked], "{tier}, {user:?}");
        }
    }
}
