//! Tests that a process can be stopped while one of its threads waits in a mediated call (signal(7), "Job control").

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::libc::{self, pid_t};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};

use crate::children::{end, in_child};
use crate::harness::as_each_user;
use crate::network::on;

const SOON: Duration = Duration::from_secs(20);

/// Waits in `accept` on one thread; then another stops the process. `first_waits`: the main thread waits.
fn wait_and_stop(server: &TcpListener, first_waits: bool) {
    thread::scope(|scope| {
        let (tell, told) = channel();
        let wait = move || {
            tell.send(gettid().as_raw()).unwrap();
            server.accept().unwrap();
        };
        let stop = move || {
            let waiting = told.recv().unwrap();
            while !accepts(waiting) {
                thread::yield_now();
            }
            raise(Signal::SIGSTOP).unwrap();
        };
        if first_waits {
            scope.spawn(stop);
            wait();
        } else {
            scope.spawn(wait);
            stop();
        }
    });
}

fn accepts(thread: pid_t) -> bool {
    let call = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).unwrap();
    call.starts_with(&format!("{} ", libc::SYS_accept4))
}

fn comes_to(child: Pid, wanted: WaitStatus) -> bool {
    let start = Instant::now();
    while start.elapsed() < SOON {
        let flags = WaitPidFlag::WUNTRACED | WaitPidFlag::WNOHANG;
        match waitpid(child, Some(flags)).unwrap() {
            WaitStatus::StillAlive => thread::yield_now(),
            status => return status == wanted,
        }
    }
    false
}

#[test]
fn a_process_stops_while_one_of_its_threads_waits_and_then_goes_on_waiting() {
    as_each_user(|place| {
        on(place, || {
            for first_waits in [false, true] {
                let server = TcpListener::bind("127.0.0.1:0").unwrap();
                let child = in_child(|| wait_and_stop(&server, first_waits));
                let stopped = comes_to(child, WaitStatus::Stopped(child, Signal::SIGSTOP));
                if !stopped {
                    end(child);
                }
                assert!(stopped, "the first thread waits: {first_waits}");
                kill(child, Signal::SIGCONT).unwrap();
                let _connected = TcpStream::connect(server.local_addr().unwrap()).unwrap();
                assert!(comes_to(child, WaitStatus::Exited(child, 0)));
            }
        });
    });
}
