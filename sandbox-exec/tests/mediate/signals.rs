//! Tests of mediated calls that wait, and of events that end the wait, such as a signal with a handler.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use crate::calls::{STREAM, bind, connect, errno, listen, socket, unix};
use crate::harness::{Place, as_each_user, on_each_machine};

static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handle(_: i32) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

fn handler(flags: SaFlags) {
    let action = SigAction::new(SigHandler::Handler(handle), flags, SigSet::empty());
    // SAFETY: the handler only counts.
    unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
}

/// Waits until a thread of the mediator, the process `broker`, is in the system call `call`.
fn wait_until_performed(broker: Pid, call: libc::c_long) {
    let waits = |thread: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(thread.unwrap().path().join("syscall")).unwrap_or_default();
        status.split(' ').next() == Some(&call.to_string())
    };
    while !std::fs::read_dir(format!("/proc/{broker}/task")).unwrap().any(waits) {
        std::thread::yield_now();
    }
}

fn interrupt_when_waiting() -> Pid {
    let (parent, broker) = (nix::unistd::getpid(), nix::unistd::getppid());
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            wait_until_performed(broker, libc::SYS_accept4);
            kill(parent, Signal::SIGUSR1).unwrap();
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) }
        }
    }
}

#[test]
fn a_handler_interrupts_what_waits() {
    as_each_user(|place| {
        place.on_the_hosts_network(|| {
            handler(SaFlags::empty());
            let server = socket(libc::AF_INET, STREAM);
            bind(&server, &crate::calls::internet("127.0.0.1:0")).unwrap();
            listen(&server, 1);
            let child = interrupt_when_waiting();
            // SAFETY: null pointers ask for no address.
            let accepted =
                unsafe { libc::accept(server.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut()) };
            assert_eq!((accepted, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EINTR)));
            assert_eq!(HANDLED.load(Ordering::SeqCst), 1);
            waitpid(child, None).unwrap();
        });
    });
}

#[test]
fn with_restarting_a_handler_runs_and_the_waiting_goes_on() {
    as_each_user(|place| {
        place.on_the_hosts_network(|| {
            handler(SaFlags::SA_RESTART);
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let child = interrupt_when_waiting();
            let client = std::thread::spawn(move || {
                while HANDLED.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                TcpStream::connect(address).unwrap()
            });
            // SAFETY: null pointers ask for no address.
            let accepted =
                unsafe { libc::accept(server.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut()) };
            assert!(accepted >= 0, "{}", std::io::Error::last_os_error());
            client.join().unwrap();
            waitpid(child, None).unwrap();
        });
    });
}

fn full(place: &Place) -> (std::os::fd::OwnedFd, std::os::fd::OwnedFd) {
    let (server, client) = (socket(libc::AF_UNIX, STREAM), socket(libc::AF_UNIX, STREAM));
    bind(&server, &unix(place.path("in/full"))).unwrap();
    listen(&server, 0);
    place.open("in/full");
    connect(&client, &unix(place.path("in/full"))).unwrap();
    (server, client)
}

#[test]
fn connecting_to_a_full_queue_waits_and_holds_up_nobody() {
    as_each_user(|place| {
        let other = UnixListener::bind(place.path("in/other")).unwrap();
        place.open("in/other");
        place.mediated(|| {
            let (server, _client) = full(place);
            let path = place.path("in/full");
            let waiting = std::thread::spawn(move || {
                connect(&socket(libc::AF_UNIX, STREAM), &unix(path)).unwrap();
            });
            wait_until_performed(nix::unistd::getppid(), libc::SYS_connect);
            let not_waiting = socket(libc::AF_UNIX, STREAM | libc::SOCK_NONBLOCK);
            assert_eq!(errno(connect(&not_waiting, &unix(place.path("in/full")))), libc::EAGAIN);
            connect(&socket(libc::AF_UNIX, STREAM), &unix(place.path("in/other"))).unwrap();
            // SAFETY: null pointers ask for no address; accepting makes room.
            unsafe { libc::accept(server.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut()) };
            waiting.join().unwrap();
        });
        drop(other);
    });
}

#[test]
fn a_time_out_of_the_socket_holds() {
    on_each_machine(|place| {
        let (_server, _client) = full(place);
        place.mediated(|| {
            let waiting = socket(libc::AF_UNIX, STREAM);
            setsockopt(&waiting, sockopt::SendTimeout, &TimeVal::milliseconds(30)).unwrap();
            assert_eq!(errno(connect(&waiting, &unix(place.path("in/full")))), libc::EAGAIN);
        });
    });
}

#[test]
fn a_killed_caller_frees_the_thread_that_waited_for_it() {
    as_each_user(|place| {
        let (_server, _client) = full(place);
        // The mediator ends with its last caller, which the test waits for: a thread that waited on would
        // hold it up.
        place.mediated(|| {
            // SAFETY: this process has one thread.
            match unsafe { fork() }.unwrap() {
                ForkResult::Parent { child } => {
                    wait_until_performed(nix::unistd::getppid(), libc::SYS_connect);
                    kill(child, Signal::SIGKILL).unwrap();
                    assert_eq!(
                        waitpid(child, None).unwrap(),
                        WaitStatus::Signaled(child, Signal::SIGKILL, false)
                    );
                }
                ForkResult::Child => {
                    drop(connect(&socket(libc::AF_UNIX, STREAM), &unix(place.path("in/full"))));
                    // SAFETY: ends this process.
                    unsafe { libc::_exit(0) }
                }
            }
        });
    });
}
