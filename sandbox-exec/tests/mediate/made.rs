//! Sockets that the mediator makes, where it may not duplicate those of its callers: what a program sees of that, and the attacks
//! on the calls that are left to the kernel.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ipc::rights::{Network, Reach};
use nix::libc::{self, c_int, c_long};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

use crate::calls::{DATAGRAM, STREAM, connect, control, errno, internet, send_message, socket, unix};
use crate::harness::{Place, as_containers, as_each_user};
use crate::messages::receive_descriptor;

const RACING: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// How an attack on a number went.
#[derive(Debug, Default)]
struct Race {
    /// On the connection: the kernel says that it has no use for an address.
    connected: usize,
    /// On the datagram socket: the mediator says no.
    denied: usize,
    /// What should not be: above all 0, when it was sent.
    strange: Option<c_int>,
}

impl Race {
    /// Sends to `address` on what is under a number, again and again, until it went as it should.
    fn run(number: &OwnedFd, address: &[u8], is_over: impl Fn(&Self) -> bool) -> Self {
        Self::run_counted(number, address, &AtomicUsize::new(0), is_over)
    }

    fn run_counted(
        number: &OwnedFd,
        address: &[u8],
        tried: &AtomicUsize,
        is_over: impl Fn(&Self) -> bool,
    ) -> Self {
        let (mut race, start) = (Self::default(), Instant::now());
        let goes_on = |race: &Self| start.elapsed() < RACING || !is_over(race) && start.elapsed() < LONGEST;
        while race.strange.is_none() && goes_on(&race) {
            match errno(send_message(number, b"x", address, &[], libc::MSG_DONTWAIT)) {
                libc::EISCONN => race.connected += 1,
                libc::EACCES => race.denied += 1,
                // Neither was certain for too long.
                libc::EPERM => {}
                other => race.strange = Some(other),
            }
            tried.fetch_add(1, Ordering::Relaxed);
        }
        race
    }

    fn has_met_both(&self) -> bool {
        self.connected > 0 && self.denied > 0 && self.strange.is_none()
    }
}

fn duplicate_to(socket: &impl AsRawFd, number: c_int) {
    // SAFETY: integers; the number is one that the test owns.
    assert_eq!(unsafe { libc::dup2(socket.as_raw_fd(), number) }, number);
}

/// Waits until it was tried twice more.
fn twice(tried: &AtomicUsize, over: &AtomicBool) {
    let before = tried.load(Ordering::Relaxed);
    while tried.load(Ordering::Relaxed) < before + 2 && !over.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

/// Another number for a socket, which others are put under.
fn number(of: &UnixStream) -> OwnedFd {
    of.try_clone().unwrap().into()
}

/// A datagram socket outside, and its address.
fn victim(place: &Place) -> (UnixDatagram, Vec<u8>) {
    let path = place.path("out/victim");
    let victim = UnixDatagram::bind(&path).unwrap();
    place.open("out/victim");
    victim.set_nonblocking(true).unwrap();
    place.keep_outside(&victim);
    (victim, unix(path))
}

/// The victim got nothing so far, and would without a mediator.
fn check(place: &Place, victim: &UnixDatagram, address: &[u8]) {
    assert!(victim.recv(&mut [0; 8]).is_err());
    place.unmediated(|| {
        let socket = socket(libc::AF_UNIX, DATAGRAM);
        assert_eq!(errno(send_message(&socket, b"x", address, &[], 0)), 0);
    });
    assert!(victim.recv(&mut [0; 8]).is_ok());
    std::fs::remove_file(place.path("out/victim")).unwrap();
}

#[test]
fn a_number_that_another_thread_changes_never_leads_outside() {
    as_containers(|place| change_in_a_thread(place, 10, Race::has_met_both, || ()));
}

/// The thread that sends is answered, and does not run for long: time for the other to change the number.
#[test]
fn a_number_that_changes_while_its_thread_is_starved_never_leads_outside() {
    as_containers(|place| {
        change_in_a_thread(
            place,
            1000,
            |race| race.denied > 0 && race.strange.is_none(),
            || {
                let mut first = CpuSet::new();
                first.set(0).unwrap();
                std::thread::spawn(move || {
                    sched_setaffinity(Pid::from_raw(0), &first).unwrap();
                    loop {
                        std::hint::spin_loop();
                    }
                });
                sched_setaffinity(Pid::from_raw(0), &first).unwrap();
                // SAFETY: a structure of integers, which the kernel reads.
                unsafe {
                    let parameters: libc::sched_param = std::mem::zeroed();
                    assert_eq!(libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters), 0);
                }
            },
        );
    });
}

/// Changes the number every so many turns; the thread that sends prepares itself first.
fn change_in_a_thread(place: &Place, turns: usize, is_over: impl Fn(&Race) -> bool, prepare: impl Fn()) {
    let (victim, address) = victim(place);
    place.mediated(|| {
        let (stream, _peer) = UnixStream::pair().unwrap();
        let racing = number(&stream);
        let over = AtomicBool::new(false);
        let race = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Refused, as long as the other thread has not run.
                    let Ok(datagrams) = UnixDatagram::unbound() else {
                        continue;
                    };
                    duplicate_to(&datagrams, racing.as_raw_fd());
                    drop(datagrams);
                    // Long enough to be met.
                    (0..turns).for_each(|_| std::thread::yield_now());
                    duplicate_to(&stream, racing.as_raw_fd());
                    // Long enough for a whole call.
                    (0..turns.max(1000)).for_each(|_| std::thread::yield_now());
                }
            });
            prepare();
            let race = Race::run(&racing, &address, &is_over);
            over.store(true, Ordering::Relaxed);
            race
        });
        assert!(is_over(&race), "no race: {race:?}");
    });
    check(place, &victim, &address);
}

#[test]
fn a_number_that_changes_with_what_another_process_passes_never_leads_outside() {
    as_containers(|place| {
        let (victim, address) = victim(place);
        place.mediated(|| {
            let (stream, _peer) = UnixStream::pair().unwrap();
            let (passing, passed) = UnixStream::pair().unwrap();
            let other = in_child(|| {
                let passing: OwnedFd = passing.try_clone().unwrap().into();
                loop {
                    // For a while it is nowhere but in the message.
                    let datagrams = socket(libc::AF_UNIX, DATAGRAM);
                    let rights =
                        control(libc::SOL_SOCKET, libc::SCM_RIGHTS, &datagrams.as_raw_fd().to_ne_bytes());
                    send_message(&passing, b"x", &[], &rights, 0).unwrap();
                    drop(datagrams);
                    // One at a time.
                    UnixStream::from(passing.try_clone().unwrap()).read_exact(&mut [0]).unwrap();
                }
            });
            let racing = number(&stream);
            let (over, tried) = (AtomicBool::new(false), AtomicUsize::new(0));
            let race = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let datagrams = receive_descriptor(&passed);
                        duplicate_to(&datagrams, racing.as_raw_fd());
                        drop(datagrams);
                        twice(&tried, &over);
                        duplicate_to(&stream, racing.as_raw_fd());
                        twice(&tried, &over);
                        (&passed).write_all(b"x").unwrap();
                    }
                });
                let race = Race::run_counted(&racing, &address, &tried, Race::has_met_both);
                over.store(true, Ordering::Relaxed);
                race
            });
            end(other);
            assert!(race.has_met_both(), "no race: {race:?}");
        });
        check(place, &victim, &address);
    });
}

#[test]
fn a_number_that_another_process_changes_in_a_shared_table_never_leads_outside() {
    as_containers(|place| {
        let (victim, address) = victim(place);
        place.mediated(|| {
            let (stream, _peer) = UnixStream::pair().unwrap();
            let racing = number(&stream);
            let datagrams = UnixDatagram::unbound().unwrap();
            let swapper = with_flags(libc::CLONE_FILES).unwrap();
            if swapper == 0 {
                loop {
                    duplicate_to(&datagrams, racing.as_raw_fd());
                    duplicate_to(&stream, racing.as_raw_fd());
                }
            }
            let race = Race::run(&racing, &address, |race| race.denied > 0);
            end(Pid::from_raw(swapper));
            // What it is was never certain but where it was the datagram socket.
            assert!(race.denied > 0 && race.connected == 0 && race.strange.is_none(), "{race:?}");
        });
        check(place, &victim, &address);
    });
}

#[test]
fn a_table_is_shared_by_two_processes_at_most() {
    as_containers(|place| {
        place.mediated(|| {
            let denied = |flags| with_flags(flags).unwrap_err().raw_os_error() == Some(libc::EPERM);
            assert!(denied(libc::CLONE_FILES | libc::CLONE_PARENT));
            let child = with_flags(libc::CLONE_FILES).unwrap();
            if child == 0 {
                let code = i32::from(!denied(libc::CLONE_FILES));
                // SAFETY: ends this process.
                unsafe { libc::_exit(code) }
            }
            let ended = waitpid(Pid::from_raw(child), None).unwrap();
            assert_eq!(ended, nix::sys::wait::WaitStatus::Exited(Pid::from_raw(child), 0));
            assert!(denied(libc::CLONE_FILES));
            // A child without, and threads, are as everywhere.
            end(in_child(|| ()));
            std::thread::spawn(|| ()).join().unwrap();
        });
    });
}

/// What is true of the call and its process decides, not what was true a moment before.
#[test]
fn a_connection_waits_for_the_datagram_sockets_of_a_process_with_threads() {
    as_containers(|place| {
        place.mediated(|| {
            let (left, _right) = UnixStream::pair().unwrap();
            let left: OwnedFd = left.into();
            let send = || errno(send_message(&left, b"x", &[], &[], 0));
            let datagrams = UnixDatagram::unbound().unwrap();
            assert_eq!(send(), 0, "the only thread");
            let (wake, woken) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let _closed = woken.recv();
                drop(datagrams);
            });
            assert_eq!(send(), libc::EPERM);
            drop(wake);
            thread.join().unwrap();
            assert_eq!(send(), 0);
        });
    });
}

#[test]
fn a_thread_that_computes_after_a_message_holds_up_no_datagram_socket() {
    as_containers(|place| {
        place.mediated(|| {
            let (left, _right) = UnixStream::pair().unwrap();
            let over = AtomicBool::new(false);
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(errno(send_message(&left.into(), b"x", &[], &[], 0)), 0);
                    tell.send(()).unwrap();
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
                told.recv().unwrap();
                let made = UnixDatagram::unbound();
                over.store(true, Ordering::Relaxed);
                made.unwrap();
            });
        });
    });
}

#[test]
fn pairs_of_datagram_sockets_are_denied() {
    as_each_user(|place| {
        place.mediated(|| {
            let expected = if place.makes_sockets() { libc::EPERM } else { 0 };
            assert_eq!(errno(UnixDatagram::pair()), expected);
            UnixStream::pair().unwrap();
        });
    });
}

/// With a duplicate that somebody keeps there would be no end.
#[test]
fn the_end_of_a_connection_is_seen_at_once() {
    as_each_user(|place| {
        let each = || {
            let (tcp, path) = (TcpListener::bind("127.0.0.1:0").unwrap(), place.path("in/ends"));
            for _ in 0..100 {
                let client = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
                let mut accepted = tcp.accept().unwrap().0;
                drop(client);
                // Nobody is left who could send, so that this returns, or the test never ends.
                assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
            }
            let server = UnixListener::bind(&path).unwrap();
            let client = UnixStream::connect(&path).unwrap();
            let mut accepted = server.accept().unwrap().0;
            accepted.set_nonblocking(true).unwrap();
            drop(client);
            assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
            std::fs::remove_file(path).unwrap();
        };
        place.mediated(each);
        place.mediate(Network::On, Reach::default(), each);
    });
}

#[test]
fn who_closed_its_listener_is_not_reached() {
    as_each_user(|place| {
        place.mediated(|| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let (address, path) = (tcp.local_addr().unwrap(), place.path("in/closed"));
            let unix = UnixListener::bind(&path).unwrap();
            let waiting = [TcpStream::connect(address).unwrap()];
            drop((tcp, unix));
            assert_eq!(errno(TcpStream::connect(address)), libc::ECONNREFUSED);
            assert_eq!(errno(UnixStream::connect(&path)), libc::ECONNREFUSED);
            for mut client in waiting {
                assert_eq!(errno(client.read(&mut [0])), libc::ECONNRESET);
            }
            // The port is free, too.
            let udp = UdpSocket::bind(address).unwrap();
            drop(udp);
            UdpSocket::bind(address).unwrap();
            TcpListener::bind(address).unwrap();
            std::fs::remove_file(path).unwrap();
        });
    });
}

#[test]
fn a_listener_lives_as_long_as_any_process_has_it() {
    as_each_user(|place| {
        place.mediated(|| {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let child = in_child(|| {
                let moved = server.try_clone().unwrap();
                loop {
                    moved.accept().unwrap().0.write_all(b"here").unwrap();
                }
            });
            drop(server);
            for _ in 0..3 {
                let mut text = String::new();
                TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
                assert_eq!(text, "here");
            }
            end(child);
            // Where the mediator accepts, it may be about to notice that the process is gone.
            while TcpStream::connect(address).is_ok() {}
            assert_eq!(errno(TcpStream::connect(address)), libc::ECONNREFUSED);
        });
    });
}

#[test]
fn what_is_made_is_what_was_asked_for() {
    as_each_user(|place| {
        place.mediated(|| {
            let flags = |style: c_int| {
                // SAFETY: integers.
                unsafe {
                    let socket = libc::socket(libc::AF_INET, style, 0);
                    let answer = (
                        libc::fcntl(socket, libc::F_GETFD),
                        libc::fcntl(socket, libc::F_GETFL) & libc::O_NONBLOCK,
                    );
                    libc::close(socket);
                    answer
                }
            };
            assert_eq!(flags(STREAM), (0, 0));
            assert_eq!(flags(STREAM | libc::SOCK_CLOEXEC), (libc::FD_CLOEXEC, 0));
            assert_eq!(flags(DATAGRAM | libc::SOCK_NONBLOCK), (0, libc::O_NONBLOCK));
            let error = |family, style, protocol| {
                // SAFETY: integers.
                assert_eq!(unsafe { libc::socket(family, style, protocol) }, -1);
                std::io::Error::last_os_error().raw_os_error().unwrap()
            };
            assert_eq!(error(999, STREAM, 0), libc::EAFNOSUPPORT);
            assert_eq!(error(libc::AF_INET, 0xff, 0), libc::EINVAL);
            assert_eq!(error(libc::AF_INET, STREAM, libc::IPPROTO_UDP), libc::EPROTONOSUPPORT);
            // The lowest number that is free, as everywhere.
            let first = socket(libc::AF_INET, STREAM);
            let number = first.as_raw_fd();
            drop(first);
            assert_eq!(socket(libc::AF_UNIX, STREAM).as_raw_fd(), number);
            setrlimit(Resource::RLIMIT_NOFILE, 8, 8).unwrap();
            let mut all = vec![];
            let full = loop {
                // SAFETY: integers; the descriptor is new.
                match unsafe { libc::socket(libc::AF_INET, STREAM, 0) } {
                    -1 => break std::io::Error::last_os_error(),
                    // SAFETY: as above.
                    number => all.push(unsafe { OwnedFd::from_raw_fd(number) }),
                }
            };
            assert_eq!(full.raw_os_error(), Some(libc::EMFILE));
        });
    });
}

/// How many descriptors the mediator has.
fn open_there() -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", getppid())).unwrap().count()
}

fn wait_until_open_there(most: usize) {
    let start = Instant::now();
    while open_there() > most {
        assert!(start.elapsed() < Duration::from_mins(1), "{} descriptors are left", open_there());
        std::thread::yield_now();
    }
}

#[test]
fn what_is_closed_is_let_go_and_too_many_are_refused() {
    as_containers(|place| {
        setrlimit(Resource::RLIMIT_NOFILE, 9000, 9000).unwrap();
        place.mediated(|| {
            drop(socket(libc::AF_INET, STREAM));
            wait_until_open_there(20);
            let before = open_there();
            let mut all = vec![];
            let refused = loop {
                // SAFETY: integers; the descriptor is new.
                match unsafe { libc::socket(libc::AF_INET, STREAM, 0) } {
                    -1 => break std::io::Error::last_os_error(),
                    // SAFETY: as above.
                    number => all.push(unsafe { OwnedFd::from_raw_fd(number) }),
                }
            };
            assert_eq!(refused.raw_os_error(), Some(libc::ENOBUFS));
            // The first may be held still.
            assert!((4095..=4096).contains(&all.len()), "{}", all.len());
            drop(all);
            // As many as one likes, one after the other.
            for _ in 0..5000 {
                drop(socket(libc::AF_INET, STREAM));
            }
            wait_until_open_there(before);
        });
    });
}

#[test]
fn callers_that_die_leave_nothing() {
    as_containers(|place| {
        place.mediated(|| {
            drop(socket(libc::AF_INET, STREAM));
            wait_until_open_there(20);
            let before = open_there();
            for _ in 0..30 {
                let child = in_child(|| {
                    loop {
                        let client = socket(libc::AF_INET, STREAM);
                        drop(connect(&client, &internet("127.0.0.1:9")));
                    }
                });
                while !std::fs::read_to_string(format!("/proc/{child}/syscall"))
                    .unwrap()
                    .starts_with(&format!("{} ", libc::SYS_connect))
                {
                    std::thread::yield_now();
                }
                end(child);
            }
            wait_until_open_there(before);
        });
    });
}

/// A process of its own, to be ended.
fn in_child(life: impl FnOnce()) -> Pid {
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            // SAFETY: integers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
            // SAFETY: ends this process.
            unsafe { libc::_exit(i32::from(lived.is_err())) }
        }
    }
}

fn end(child: Pid) {
    assert_ne!(child, getpid());
    kill(child, Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
}

/// As fork(2), with flags.
fn with_flags(flags: c_int) -> std::io::Result<libc::pid_t> {
    let flags = c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without a stack the child goes on with a copy of this one, as after fork(2); this process has one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid < 0 { Err(std::io::Error::last_os_error()) } else { Ok(libc::pid_t::try_from(pid).unwrap()) }
}
