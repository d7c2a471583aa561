//! Tests standard streams of `bailiwick sandbox` that are no terminals, and what a command can do with them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use ipc::confinement::Tier;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use tests::{Finished, User, World, tier, wait_until};

fn everywhere() -> Vec<(Tier, User)> {
    tier::all().into_iter().flat_map(|tier| User::all().into_iter().map(move |user| (tier, user))).collect()
}

fn bash(world: &World, tier: Tier, script: &str) -> Command {
    let mut command = world.sandbox(tier, &[], "bash");
    command.args(["-c", script]);
    command
}

fn python(world: &World, confined: Option<Tier>, script: &str) -> Command {
    let mut command = match confined {
        Some(tier) => world.sandbox(tier, &[], "python3"),
        None => world.command("python3"),
    };
    command.args(["-c", script]);
    command
}

fn end(command: &mut Command) -> Finished {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap().into()
}

/// Creates a file of the user's outside of the project. The sandbox may read it, and must not change it.
fn outside(world: &World, content: &[u8]) -> PathBuf {
    let path = world.root().join("outside");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    world.give(&path);
    path
}

fn state(path: &Path) -> (u32, i64, Vec<u8>) {
    let meta = fs::metadata(path).unwrap();
    (meta.mode() & 0o7777, meta.mtime(), fs::read(path).unwrap())
}

/// Program that sends to a process of the host through the socket on standard input.
const THROUGH_SOCKET: &str = "
import socket, sys
s = socket.socket(fileno=0)
to = sys.argv[2]
if s.family == socket.AF_UNIX:
    s.sendto(b'reached', '\\0' + to)
elif s.type == socket.SOCK_DGRAM:
    s.sendto(b'reached', ('127.0.0.1', int(to)))
else:
    import ctypes
    # AF_UNSPEC ends a connection; connect(2).
    ctypes.CDLL(None).connect(0, bytes(16), 16)
    s.connect(('127.0.0.1', int(to)))
";

/// Way to a process of the host: a passed socket, the destination, and a function that returns true after success.
struct Way {
    socket: Box<dyn Fn() -> OwnedFd>,
    to: String,
    came: Box<dyn Fn() -> bool>,
}

fn ways(world: &World) -> Vec<Way> {
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let connections = TcpListener::bind("127.0.0.1:0").unwrap();
    connections.set_nonblocking(true).unwrap();
    let name = world.mark();
    let local = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    local.set_nonblocking(true).unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    vec![
        Way {
            socket: Box::new(|| UdpSocket::bind("127.0.0.1:0").unwrap().into()),
            to: datagrams.local_addr().unwrap().port().to_string(),
            came: Box::new(move || datagrams.recv(&mut [0; 16]).is_ok()),
        },
        Way {
            socket: Box::new(move || {
                let ours = TcpStream::connect(other.local_addr().unwrap()).unwrap();
                // The other end is closed, so that the attack does not wait for it.
                drop(other.accept().unwrap());
                ours.into()
            }),
            to: connections.local_addr().unwrap().port().to_string(),
            came: Box::new(move || connections.accept().is_ok()),
        },
        Way {
            socket: Box::new(|| UnixDatagram::pair().unwrap().0.into()),
            to: name,
            came: Box::new(move || local.recv(&mut [0; 16]).is_ok()),
        },
    ]
}

#[test]
fn a_socket_on_standard_input_leads_nowhere_else() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        for Way { socket, to, came } in ways(&world) {
            let attack = |confined| {
                let mut command = python(&world, confined, THROUGH_SOCKET);
                end(command.args(["--", &to]).stdin(socket()))
            };
            let control = attack(None);
            assert!(control.code == 0 && came(), "control: {}", control.stderr);
            let tried = attack(Some(tier));
            assert!(tried.stderr.contains("[Errno 88]"), "{tier} {user:?} {to}: {}", tried.stderr);
            assert!(!came(), "{tier} {user:?}: {to}");
        }
    }
}

#[test]
fn a_socket_carries_what_a_pipe_would() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut child = {
            let mut command = bash(&world, tier, "cat; echo end");
            command.stdin(OwnedFd::from(theirs.try_clone().unwrap())).stdout(OwnedFd::from(theirs));
            command.spawn().unwrap()
        };
        ours.write_all(b"said\n").unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        let mut heard = String::new();
        ours.read_to_string(&mut heard).unwrap();
        assert_eq!((heard.as_str(), child.wait().unwrap().code()), ("said\nend\n", Some(0)));
    }
}

#[test]
fn a_file_on_a_standard_stream_is_not_changed_through_it() {
    let attacks = [
        (0, "import os; os.fchmod(0, 0o777)"),
        (0, "import os; os.utime(0, (7, 7))"),
        (0, "open('/proc/self/fd/0', 'a').write('more')"),
        (1, "import os; os.fchmod(1, 0o777)"),
        (1, "import os; os.utime(1, (7, 7))"),
        (1, "import os; os.ftruncate(1, 1)"),
        (2, "import os; os.fchmod(2, 0o777)"),
    ];
    for (tier, user) in everywhere() {
        let world = World::new(user);
        for (stream, attack) in attacks {
            let path = outside(&world, b"kept");
            let before = state(&path);
            let try_it = |confined| {
                let mut command = python(&world, confined, attack);
                let file = File::options().read(true).append(stream != 0).open(&path).unwrap();
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                match stream {
                    0 => command.stdin(file),
                    1 => command.stdout(file),
                    _ => command.stderr(file),
                };
                command.status().unwrap()
            };
            try_it(Some(tier));
            let after = state(&path);
            // The command's own output may be appended, which changes the time.
            let is_kept = after.0 == before.0 && after.1 >= before.1 && after.2.starts_with(b"kept");
            assert!(is_kept && (stream != 0 || after == before), "{tier} {user:?} {attack}: {after:?}");
            assert!(try_it(None).success(), "control: {attack}");
            assert_ne!(state(&path), after, "control: {attack}");
        }
    }
}

#[test]
fn what_the_host_runs_later_is_not_changed_through_standard_input() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        world.file("a", "a");
        world.commit();
        let config = world.project().join(".git/config");
        let before = state(&config);
        let attack = "echo '[core]' >> /proc/self/fd/0";
        end(bash(&world, tier, attack).stdin(File::open(&config).unwrap()));
        assert_eq!(state(&config), before, "{tier} {user:?}");
        let directory = || File::open(world.project().join(".git")).unwrap();
        let attack = "echo evil > /proc/self/fd/0/hooks/pre-commit";
        let tried = end(bash(&world, tier, attack).stdin(directory()));
        assert_eq!(tried.code, 5, "{tier} {user:?}: {}", tried.stderr);
        assert!(tried.stderr.contains("standard input is a directory"), "{}", tried.stderr);
        assert!(!world.project().join(".git/hooks/pre-commit").exists());
        let control = end(world.command("bash").args(["-c", attack]).stdin(directory()));
        assert_eq!(control.code, 0, "{}", control.stderr);
    }
}

#[test]
fn a_named_pipe_is_not_changed_through_standard_input() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let path = world.root().join("named");
        mkfifo(&path, Mode::from_bits_truncate(0o644)).unwrap();
        world.give(&path);
        // Both ends are open: opening does not block, and the fifo stays open until the command ends.
        let both = || File::options().read(true).write(true).open(&path).unwrap();
        let script = "import os; os.fchmod(0, 0o777); print(os.read(0, 4))";
        for (confined, mode) in [(Some(tier), 0o644), (None, 0o777)] {
            let ours = both();
            (&ours).write_all(b"said").unwrap();
            let done = end(python(&world, confined, script).stdin(both()));
            assert_eq!(done.stdout, "b'said'\n", "{tier} {user:?}: {}", done.stderr);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode, "{tier} {user:?}");
        }
    }
}

#[test]
fn everything_arrives_as_it_is() {
    // The length is not a multiple of a pipe's capacity, and the data contains every byte.
    let data: Vec<u8> = (0u32..).flat_map(u32::to_le_bytes).take((32 << 20) + 12345).collect();
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let input = outside(&world, &data);
        let output = world.root().join("output");
        let mut cat = bash(&world, tier, "cat; exit 7");
        cat.stdin(File::open(&input).unwrap()).stdout(File::create(&output).unwrap());
        assert_eq!(cat.status().unwrap().code(), Some(7));
        assert!(fs::read(&output).unwrap() == data, "{tier} {user:?}: file to file");

        let mut cat = bash(&world, tier, "cat; exit 7");
        let mut cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, data_in) = (cat.stdin.take().unwrap(), data.clone());
        let writer = thread::spawn(move || stdin.write_all(&data_in).unwrap());
        let mut heard = vec![];
        cat.stdout.take().unwrap().read_to_end(&mut heard).unwrap();
        writer.join().unwrap();
        assert_eq!(cat.wait().unwrap().code(), Some(7));
        assert!(heard == data, "{tier} {user:?}: pipe to pipe");
    }
}

#[test]
fn output_and_errors_keep_their_order_in_one_file() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let path = world.root().join("output");
        let file = File::create(&path).unwrap();
        let script = "for i in 1 2 3 4 5 6 7 8; do echo o$i; echo e$i >&2; done; echo end > /dev/stdout";
        let mut command = bash(&world, tier, script);
        command.stdout(file.try_clone().unwrap()).stderr(file);
        assert_eq!(command.stdin(Stdio::null()).status().unwrap().code(), Some(0));
        let expected: String = (1..=8).map(|i| format!("o{i}\ne{i}\n")).chain(["end\n".to_owned()]).collect();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{tier} {user:?}");
    }
}

#[test]
fn a_file_is_left_where_the_command_stopped_reading() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        for (content, script, rest) in [
            (b"a\nb\nc\n".to_vec(), "true", "a\nb\nc\n"),
            (b"a\nb\nc\n".to_vec(), "read x; echo $x", "b\nc\n"),
            (b"a\nb\nc\n".to_vec(), "cat", ""),
            // Bytes that the command itself writes into the pipe do not count as bytes of the file.
            (b"a\nb\n".to_vec(), "read x; echo mine and more > /proc/self/fd/0", "a\nb\n"),
        ] {
            let mut file = File::open(outside(&world, &content)).unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            let done = end(bash(&world, tier, script).stdin(file.try_clone().unwrap()));
            let mut left = String::new();
            file.read_to_string(&mut left).unwrap();
            assert_eq!(left, rest, "{tier} {user:?} {script}: {}", done.stderr);
        }
        let endless = File::open("/dev/zero").unwrap();
        let done = end(bash(&world, tier, "head -c 3 | od -An -tx1").stdin(endless));
        assert_eq!((done.code, done.stdout.as_str()), (0, " 00 00 00\n"), "{}", done.stderr);
    }
}

#[test]
fn who_writes_is_told_when_nobody_reads() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let mut yes = world.sandbox(tier, &[], "yes");
        let mut yes = yes.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 2];
        yes.stdout.take().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"y\n");
        assert_eq!(yes.wait().unwrap().code(), Some(128 + Signal::SIGPIPE as i32), "{tier} {user:?}");
    }
}

#[test]
fn what_cannot_be_written_is_said() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let run = |script| {
            let mut command = bash(&world, tier, script);
            Finished::from(
                command.stdin(Stdio::null()).stdout(full()).stderr(Stdio::piped()).output().unwrap(),
            )
        };
        let said = "bailiwick: cannot write to standard output: No space left on device (os error 28)\n";
        let done = run("echo lost");
        assert_eq!((done.code, done.stderr.as_str()), (1, said), "{tier} {user:?}");
        let done = run("echo lost; exit 4");
        assert_eq!((done.code, done.stderr.as_str()), (4, said), "{tier} {user:?}");
        assert_eq!(run("true").code, 0);
    }
}

#[test]
fn a_command_that_only_prints_says_what_it_cannot_write_and_fails_for_no_reader_that_is_gone() {
    let world = World::new(User::Myself);
    for arguments in [
        &["config", "--all"][..],
        &["doctor"],
        &["doctor", "--json"],
        &["explain", "/etc"],
        &["serve", "--print-schema"],
    ] {
        let run = |stdout: Stdio| {
            let mut command = world.bailiwick(arguments);
            command.current_dir(world.project());
            Finished::from(
                command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).output().unwrap(),
            )
        };
        let full = run(File::options().write(true).open("/dev/full").unwrap().into());
        let said = "bailiwick: cannot write to standard output: No space left on device (os error 28)\n";
        assert!(
            full.code == 1 && full.stderr.ends_with(said),
            "{arguments:?}: {} {}",
            full.code,
            full.stderr
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let gone = run(writer.into());
        assert!(gone.code == 0 && !gone.stderr.contains("output"), "{arguments:?}: {}", gone.stderr);
    }
}

#[test]
fn a_signal_ends_what_writes_to_nobody() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let mut yes = world.sandbox(tier, &[], "yes");
        let mut yes = yes.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        // The command runs now. From here on nobody reads the pipe, which stays open.
        let mut unread = yes.stdout.take().unwrap();
        unread.read_exact(&mut [0; 2]).unwrap();
        kill(Pid::from_raw(yes.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        let mut status = None;
        wait_until("it has ended", || {
            status = yes.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(143), "{tier} {user:?}");
    }
}
