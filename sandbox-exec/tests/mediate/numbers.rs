use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::libc::{self, c_int};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::calls::{DATAGRAM, control, errno, send_message, socket, try_socket, unix};
use crate::children::{end, in_child, with_flags};
use crate::harness::{Place, as_containers, goes_on};
use crate::messages::receive_descriptor;

const RACING: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Race {
    /// Number of sends on the connected socket, for which the kernel rejects an address.
    connected: usize,
    /// Number of sends on the datagram socket, which the mediator denied.
    denied: usize,
    /// Unexpected errno; above all 0, which means that a message was sent.
    strange: Option<c_int>,
}

impl Race {
    /// Sends repeatedly by one descriptor number, under which another thread puts different sockets, until `is_over`.
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
        while race.strange.is_none() && goes_on(start, RACING, is_over(&race)) {
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

fn twice(tried: &AtomicUsize, over: &AtomicBool) {
    let before = tried.load(Ordering::Relaxed);
    while tried.load(Ordering::Relaxed) < before + 2 && !over.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

/// Returns a descriptor; the test will replace the socket under its number again and again.
fn number(of: &UnixStream) -> OwnedFd {
    of.try_clone().unwrap().into()
}

fn victim(place: &Place) -> (UnixDatagram, Vec<u8>) {
    let path = place.path("out/victim");
    let victim = UnixDatagram::bind(&path).unwrap();
    place.open("out/victim");
    victim.set_nonblocking(true).unwrap();
    place.keep_outside(&victim);
    (victim, unix(path))
}

/// Checks that the victim has received nothing, and that it does receive what is sent without a mediator.
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

/// Tests the race with a sending thread that seldom runs: the other has time to change the number meanwhile.
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

/// Replaces the socket under a descriptor number every `turns` turns, while another thread sends by the number.
/// `prepare` is run on the sending thread first.
fn change_in_a_thread(place: &Place, turns: usize, is_over: impl Fn(&Race) -> bool, prepare: impl Fn()) {
    let (victim, address) = victim(place);
    place.mediated(|| {
        let (stream, _peer) = UnixStream::pair().unwrap();
        let racing = number(&stream);
        let over = AtomicBool::new(false);
        let race = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Denied, as long as the other thread has not run.
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
            // Without the other process nothing comes any more: the test fails, and does not wait for ever.
            passed.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
            let other = in_child(|| {
                let passing: OwnedFd = passing.try_clone().unwrap().into();
                loop {
                    // For a while it is only in the message.
                    let datagrams = loop {
                        // Denied, as long as the mediator has not noticed that the earlier ones are gone.
                        match try_socket(libc::AF_UNIX, DATAGRAM) {
                            Ok(datagrams) => break datagrams,
                            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS)),
                        }
                        std::thread::yield_now();
                    };
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
            // Only the datagram socket was ever certain.
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
            // A child without the table, and threads, work as everywhere.
            end(in_child(|| ()));
            std::thread::spawn(|| ()).join().unwrap();
        });
    });
}

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
                // On a busy machine the thread does not compute for long enough at first.
                let made = (0..30).find_map(|_| UnixDatagram::unbound().ok());
                over.store(true, Ordering::Relaxed);
                made.unwrap();
            });
        });
    });
}
