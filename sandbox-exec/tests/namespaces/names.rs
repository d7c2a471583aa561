//! Tests of abstract names of unix sockets on the host's network. The kernel keeps the names of each socket type apart.

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept, bind, listen, recv, socket,
};

use crate::common::order::order;
use crate::common::place::{Place, as_each_user, errors, text};
use crate::common::waiting::Waiting;
use ipc::rights::Network;

const TYPES: [SockType; 3] = [SockType::Stream, SockType::Datagram, SockType::SeqPacket];

/// Script that binds a socket inside to the name of a host's socket, for each pair of types. It prints if calls by that
/// name reach the host's socket or the one inside. Its waiting threads make several threads of the broker answer.
const PROGRAM: &str = "import os, socket, threading
name = '\\0' + os.environ['NAME']
kinds = [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET]
def bound(kind, name):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(name)
    kind == socket.SOCK_DGRAM or s.listen()
    return s
def reach(kind, name):
    s = socket.socket(socket.AF_UNIX, kind)
    s.sendto(b'x', name) if kind == socket.SOCK_DGRAM else s.connect(name)
    return s
def number(act, *arguments):
    try: return act(*arguments) and 0
    except OSError as error: return error.errno
listeners = [bound(socket.SOCK_STREAM, f'{name}-waits-{n}') for n in range(12)]
threads = [threading.Thread(target=listener.accept) for listener in listeners]
for thread in threads: thread.start()
for theirs in kinds:
    for ours in kinds:
        to, own = f'{name}-{theirs}-{ours}', socket.socket(socket.AF_UNIX, ours)
        if number(lambda: own.bind(to) or 1) == 0 and ours != socket.SOCK_DGRAM: own.listen()
        print(number(reach, theirs, to))
for listener in listeners: reach(socket.SOCK_STREAM, listener.getsockname())
for thread in threads: thread.join()
for kind in kinds:
    server, client = bound(kind, f'{name}-own-{kind}'), reach(kind, f'{name}-own-{kind}')
    print('reached', len(server.recv(9)) if kind == socket.SOCK_DGRAM else server.accept()[0].send(b'x'))";

const REACHED: &str = "reached 1\nreached 1\nreached 1\n";

/// Sockets of the host with abstract names: three of each type, each for one type of socket inside.
struct Victim {
    name: String,
    sockets: Vec<(SockType, OwnedFd)>,
}

impl Victim {
    fn new(place: &Place) -> Self {
        let name = format!("names{}", place.path("").display());
        let pairs = TYPES.iter().flat_map(|theirs| TYPES.map(|ours| (*theirs, ours)));
        let made = pairs.map(|(theirs, ours)| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let victim = socket(AddressFamily::Unix, theirs, flags, None).unwrap();
            let name = format!("{name}-{}-{}", theirs as i32, ours as i32);
            bind(victim.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).unwrap()).unwrap();
            if theirs != SockType::Datagram {
                listen(&victim, Backlog::new(8).unwrap()).unwrap();
            }
            (theirs, victim)
        });
        Self { sockets: made.collect(), name }
    }

    fn reached(&self) -> usize {
        let reached = self.sockets.iter().filter(|(kind, victim)| match kind {
            SockType::Datagram => recv(victim.as_raw_fd(), &mut [0], MsgFlags::empty()).is_ok(),
            _ => accept(victim.as_raw_fd()).is_ok(),
        });
        reached.count()
    }

    fn meets(&self, program: &mut Command) -> (String, usize) {
        let output = program.args(["python3", "-c", PROGRAM]).output().unwrap();
        (text(&output) + &errors(&output), self.reached())
    }
}

#[test]
fn no_type_of_a_name_taken_inside_opens_another_of_the_hosts() {
    as_each_user(|place| {
        let victim = Victim::new(place);
        let environment = format!("NAME={}", victim.name);
        let unconfined = victim.meets(place.command("/usr/bin/env").arg(&environment));
        assert_eq!(unconfined, ("0\n".repeat(9) + REACHED, 9));
        for net in ["off", "on"] {
            for abi in ["9", "5"] {
                let flags = ["--net", net, "--landlock-abi", abi, "--env", &environment];
                let mut sandbox = place.sandbox(&flags);
                let (said, reached) = victim.meets(&mut sandbox);
                assert_eq!(reached, 0, "{net}, {abi}: {said}");
                // In a network namespace of its own a program has such a name for itself.
                if !(place.full() && net == "off") {
                    assert_eq!(said, "111\n".repeat(9) + REACHED, "{net}, {abi}");
                }
            }
        }
    });
}

#[test]
fn nor_where_the_sandbox_was_executed_before_its_order() {
    as_each_user(|place| {
        let victim = Victim::new(place);
        let script = format!("NAME='{}' exec python3 -c \"$PROGRAM\"", victim.name);
        let waiting = Waiting::start(place, &script);
        let mut online = order(place);
        online.rights.net = Network::On;
        online.environment.set.push(("PROGRAM".into(), PROGRAM.into()));
        let output = waiting.execute(&online);
        assert_eq!(text(&output) + &errors(&output), "111\n".repeat(9) + REACHED);
        assert_eq!(victim.reached(), 0);
    });
}

/// Script of a server inside that listens at a name, reports that, and then prints if a client was let in.
const SERVER: &str = "import os, socket
s = socket.socket(socket.AF_UNIX); s.bind('\\0' + os.environ['NAME']); s.listen()
open('ready', 'w').close(); open('done').close()
s.setblocking(False)
try: s.accept(); print('let in')
except BlockingIOError: print('closed')";

const STRANGER: &str = "cat ready
    unshare -Upf python3 -c 'import os, socket, sys
socket.socket(socket.AF_UNIX).connect(\"\\0\" + sys.argv[1]); print(os.getpid())' \"$0\"
    : > done";

/// Tests that a process outside is not taken for the broker, although both have pid 1 in their own pid namespaces.
#[test]
fn a_stranger_with_the_brokers_number_elsewhere_is_not_let_in() {
    as_each_user(|place| {
        if !place.command("unshare").args(["-Upf", "true"]).status().unwrap().success() {
            eprintln!("skipped: a stranger in another pid namespace (this machine refuses them)");
            return;
        }
        let name = format!("names-met{}", place.path("").display());
        let environment = format!("NAME={name}");
        place.unconfined("mkfifo ready done");
        let meet = |server: &mut Command| {
            let server = server.args(["python3", "-c", SERVER]).stdout(Stdio::piped()).spawn().unwrap();
            let stranger = place.command("/bin/bash").args(["-c", STRANGER, &name]).output().unwrap();
            assert_eq!(text(&stranger), "1\n", "{}", errors(&stranger));
            text(&server.wait_with_output().unwrap())
        };
        assert_eq!(meet(place.command("/usr/bin/env").arg(&environment)), "let in\n");
        for abi in ["9", "5"] {
            let flags = ["--net", "on", "--landlock-abi", abi, "--env", &environment];
            assert_eq!(meet(&mut place.sandbox(&flags)), "closed\n", "{abi}");
        }
    });
}
