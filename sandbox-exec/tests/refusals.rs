//! Tests of the reports of denials that the broker writes to its pipe. The program must not be able to write there.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener};

use common::order::{encoded, order, ordered};
use common::place::{Place, as_each_user, errors, text};
use ipc::confinement::BrokerReport;
use ipc::frame;
use ipc::id::Generation;
use ipc::place::Place as Whose;
use ipc::refusal::{Act, Refusal, Target};
use nix::libc;

/// Runs a Python script; returns the denials and the output.
fn refused(place: &Place, script: &str) -> (Vec<Refusal>, String) {
    let rights = encoded(&order(place));
    let (output, reports) = ordered(place, &rights, &["/usr/bin/python3", "-c", script]);
    assert!(output.status.success(), "{script}: {}{}", text(&output), errors(&output));
    let refused = reports.into_iter().filter_map(|report| match report {
        BrokerReport::Refused(refusal) => Some(refusal),
        _ => None,
    });
    (refused.collect(), text(&output))
}

fn failing(act: &str) -> String {
    format!(
        "import ctypes, os, socket as s\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         def call(number, *arguments):\n    \
             done = libc.syscall(*[ctypes.c_long(argument) for argument in (number, *arguments, *[0] * 6)[:7]])\n    \
             if done < 0: raise OSError(ctypes.get_errno(), 'call')\n    \
             return done\n\
         def act():\n    {act}\ntry:\n    act()\n    print('it succeeded')\n\
         except OSError as e:\n    print(e.errno)"
    )
}

fn check(place: &Place, act: &str, expected: (Act, Target), errno: i32) {
    let (refused, printed) = refused(place, &failing(act));
    assert_eq!(printed.trim(), errno.to_string(), "{act}");
    assert_eq!(refused.len(), 1, "{act}: {refused:?}");
    let refusal = &refused[0];
    assert_eq!((refusal.act, refusal.object.clone()), expected, "{act}");
    assert_eq!((refusal.errno, refusal.count, refusal.untold), (errno, 1, 0), "{act}");
    assert!(refusal.program.starts_with("python3"), "{refusal:?}");
}

fn listener(place: &Place, name: &str) -> UnixListener {
    let path = place.path(name);
    let listener = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    listener
}

#[test]
fn addresses_and_sockets_are_told_with_the_program_and_the_error() {
    as_each_user(|place| {
        let _socket = listener(place, "home/socket");
        let path = place.path("home/socket");
        let connect = format!("s.socket(s.AF_UNIX).connect('{}')", path.display());
        check(place, &connect, (Act::Connect, Target::Socket(path.into())), libc::EACCES);
        let to = "192.0.2.1:9".parse().unwrap();
        let target = || Target::Internet(to, Whose::Elsewhere);
        let connect = "s.socket().connect(('192.0.2.1', 9))";
        check(place, connect, (Act::Connect, target()), libc::ENETUNREACH);
        let send = "s.socket(type=s.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))";
        check(place, send, (Act::Send, target()), libc::ENETUNREACH);
    });
}

#[test]
fn in_the_floor_servers_names_files_and_objects_of_the_host_are_told() {
    as_each_user(|place| {
        if place.full() {
            return;
        }
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let connect = format!("s.socket().connect(('127.0.0.1', {}))", address.port());
        let target = Target::Internet(address, Whose::Host);
        check(place, &connect, (Act::Connect, target), libc::ECONNREFUSED);
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = datagrams.local_addr().unwrap();
        let send = format!("s.socket(type=s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {}))", address.port());
        check(place, &send, (Act::Send, Target::Internet(address, Whose::Host)), libc::ECONNREFUSED);
        let name = format!("bw-refusals-{}", std::process::id());
        let _abstract = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&name).unwrap()).unwrap();
        let connect = format!("s.socket(s.AF_UNIX).connect('\\0{name}')");
        let target = Target::Abstract(name.into_bytes());
        check(place, &connect, (Act::Connect, target), libc::ECONNREFUSED);
        let notes = place.path("home/notes");
        let change = format!("os.chmod('{}', 0o600)", notes.display());
        check(place, &change, (Act::Change, Target::File(notes.into())), libc::EACCES);
    });
}

/// Tests that a denied connection is reported only if a server listens, and that finding out does not disturb it.
#[test]
fn a_socket_at_which_nobody_listens_is_not_told() {
    as_each_user(|place| {
        let path = place.path("home/socket");
        let connect =
            |kind: &str| failing(&format!("s.socket(s.AF_UNIX, s.{kind}).connect('{}')", path.display()));
        let server = listener(place, "home/socket");
        server.set_nonblocking(true).unwrap();
        let (told, printed) = refused(place, &connect("SOCK_STREAM"));
        assert_eq!((told.len(), printed.trim()), (1, "13"), "{told:?}");
        assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody has come");
        drop(server);
        let unconfined = place.unconfined(&format!("python3 -c \"{}\"", connect("SOCK_STREAM")));
        assert_eq!(text(&unconfined).trim(), libc::ECONNREFUSED.to_string(), "{}", errors(&unconfined));
        for kind in ["SOCK_STREAM", "SOCK_DGRAM"] {
            let (told, printed) = refused(place, &connect(kind));
            assert_eq!((told, printed.trim()), (vec![], "13"), "{kind}");
        }
        std::fs::remove_file(&path).unwrap();
        let _datagrams = UnixDatagram::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let (told, _) = refused(place, &connect("SOCK_DGRAM"));
        assert_eq!(told.len(), 1, "{told:?}");
    });
}

/// Tests that a call which plain permissions or the kernel would deny anyway is not reported as denied by the rules.
#[test]
fn what_would_have_failed_without_the_rules_is_not_told() {
    as_each_user(|place| {
        let socket = place.path("home/missing");
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut acts = vec![
            format!("s.socket(s.AF_UNIX).connect('{}')", socket.display()),
            format!("s.socket(s.AF_UNIX).connect('{}')", place.path("home/notes").display()),
            format!("s.socket().connect(('127.0.0.1', {closed}))"),
            "s.socket(s.AF_UNIX).connect('\\0bw-no-such-name')".to_owned(),
            "a = s.create_server(('127.0.0.1', 0)); s.socket().bind(a.getsockname())".to_owned(),
            "s.socket().bind(('192.0.2.1', 0))".to_owned(),
            format!("os.chmod('{}', 0o600)", socket.display()),
            "p = os.fork() or os._exit(0); os.waitpid(p, 0); os.kill(p, 9)".to_owned(),
            "a = s.create_server(('127.0.0.1', 0)); n = a.getsockname(); a.close(); s.socket().connect(n)"
                .to_owned(),
        ];
        if place.user().is_some() {
            acts.push("os.chmod('/etc/hosts', 0o600)".to_owned());
            acts.push("os.utime('/etc/hosts')".to_owned());
            acts.push("os.kill(1, 9)".to_owned());
        }
        for act in acts {
            let (refused, printed) = refused(place, &failing(&act));
            assert!(printed.trim().parse::<i32>().is_ok(), "{act}: {printed}");
            assert_eq!(refused, [], "{act}");
        }
    });
}

/// Script that writes its argument, given in hexadecimal, to every descriptor of itself and its parents.
const FORGE: &str = r"
import ctypes, os, sys
frame = bytes.fromhex(sys.argv[1])
found = [n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}')]
for parent in [os.getppid(), 1]:
    for n in range(3, 64):
        try:
            found.append(os.open(f'/proc/{parent}/fd/{n}', os.O_WRONLY))
        except OSError:
            pass
    try:
        held = os.pidfd_open(parent)
    except OSError:
        continue
    taken = [ctypes.CDLL(None).syscall(438, held, n, 0) for n in range(3, 64)]
    found += [n for n in taken if n >= 0]
for n in found:
    try:
        os.write(n, frame)
    except OSError:
        pass
print(len(found))";

/// Returns a forged report that the program has ended with status 99.
fn forged() -> String {
    let body = frame::seal(Generation(0), &BrokerReport::Ended { status: 99 }).unwrap();
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    hexadecimal(&[&length[..], &body].concat())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[test]
fn the_program_has_no_end_of_the_pipe_and_cannot_take_one() {
    as_each_user(|place| {
        let control = format!("exec 21> forged; python3 -c \"{FORGE}\" {} 21>&- > /dev/null; :", forged());
        assert!(place.unconfined(&control).status.success());
        let found = hexadecimal(&std::fs::read(place.path("project/forged")).unwrap());
        assert!(found.contains(&forged()), "unconfined it is written: {found}");
        let rights = encoded(&order(place));
        let (output, reports) = ordered(place, &rights, &["/usr/bin/python3", "-c", FORGE, &forged()]);
        assert_eq!(text(&output), "0\n", "{}", errors(&output));
        let [BrokerReport::Started { .. }, BrokerReport::Ended { status: 0 }] = &reports[..] else {
            panic!("{reports:?}");
        };
    });
}

/// Tests many denied calls while nobody reads the reports: the broker does not wait, and its memory is bounded.
#[test]
fn a_flood_of_refused_calls_is_told_in_so_many_words() {
    as_each_user(|place| {
        let flood = "import os, socket as s\n\
            for process in range(12):\n\
            \x20   if os.fork() == 0:\n\
            \x20       for n in range(200):\n\
            \x20           try: s.socket().connect((f'192.0.2.{process}', 1 + n))\n\
            \x20           except OSError: pass\n\
            \x20       os._exit(0)\n\
            while True:\n\
            \x20   try: os.wait()\n\
            \x20   except ChildProcessError: break\n\
            print('done')";
        let (refused, printed) = refused(place, flood);
        assert_eq!(printed, "done\n");
        let by_process = |process| refused.iter().filter(|refusal| refusal.process == process).count();
        assert!(refused.len() > 32, "{}", refused.len());
        assert!(refused.iter().all(|refusal| by_process(refusal.process) <= 32), "{refused:?}");
    });
}
