//! Test of the mediator's memory and descriptors after thousands of connections, in sequence and in parallel.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};

use crate::calls::errno;
use crate::children::{end, in_child, open_there, wait_until_open_there};
use crate::harness::in_each_tier_on_each_machine;

// Number of connections before the first measurement of the mediator, and then one after the other.
const WARM: usize = 500;
const MANY: usize = 5000;
// Number of simultaneous connections, and of processes that open them.
const AT_ONCE: usize = 500;
const PROCESSES: usize = 4;
/// Allowed growth of the mediator's memory in KiB: its tables are bounded, and each additional thread needs a stack.
const SLACK: usize = 2048;
/// Allowed growth of the number of descriptors, after thousands of connections as after one. Descriptors inherited from
/// parallel tests are counted before.
const MORE: usize = 16;

/// Returns the mediator's memory in KiB (`RssAnon` of `proc_pid_status(5)`).
fn memory_there() -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", getppid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

fn visit(server: SocketAddr) {
    let mut client = TcpStream::connect(server).unwrap();
    client.write_all(b"ask").unwrap();
    let mut answer = [0; 6];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer");
}

fn answer(mut client: TcpStream) {
    client.read_exact(&mut [0; 3]).unwrap();
    client.write_all(b"answer").unwrap();
}

fn ended(children: impl IntoIterator<Item = Pid>) {
    for child in children {
        assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
    }
}

fn serve(server: &TcpListener, count: usize) -> Pid {
    in_child(|| server.incoming().take(count).for_each(|client| answer(client.unwrap())))
}

fn visit_in_turn(server: SocketAddr, count: usize) {
    (0..count / 2).for_each(|_| visit(server));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..count / 4).for_each(|_| visit(server)));
        }
    });
}

#[test]
fn thousands_of_connections_leave_nothing_in_the_mediator() {
    in_each_tier_on_each_machine(|place| {
        place.mediated(|| {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let idle = open_there() + MORE;
            let child = serve(&server, WARM + MANY);
            visit_in_turn(address, WARM);
            wait_until_open_there(idle);
            let memory = memory_there();
            visit_in_turn(address, MANY);
            ended([child]);
            wait_until_open_there(idle);
            let grown = memory_there().saturating_sub(memory);
            assert!(grown <= SLACK, "{grown} KiB more for {MANY} connections");
        });
    });
}

#[test]
fn hundreds_at_once_are_all_connected_and_all_let_go() {
    in_each_tier_on_each_machine(|place| {
        place.mediated(|| {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let idle = open_there() + MORE;
            let children: Vec<_> = (0..PROCESSES)
                .map(|_| {
                    in_child(|| {
                        let all: Vec<_> =
                            (0..AT_ONCE / PROCESSES).map(|_| TcpStream::connect(address).unwrap()).collect();
                        // Held until the server has them all.
                        for mut client in all {
                            client.read_exact(&mut [0]).unwrap();
                        }
                    })
                })
                .collect();
            let all: Vec<_> = (0..AT_ONCE).map(|_| server.accept().unwrap().0).collect();
            for mut client in all {
                client.write_all(b"x").unwrap();
            }
            ended(children);
            wait_until_open_there(idle);
        });
    });
}

#[test]
fn a_flood_of_connections_that_fail_starves_nobody() {
    in_each_tier_on_each_machine(|place| {
        place.mediated(|| {
            let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let flood: Vec<_> = (0..8)
                .map(|_| {
                    in_child(|| {
                        loop {
                            assert_eq!(errno(TcpStream::connect(closed)), libc::ECONNREFUSED);
                        }
                    })
                })
                .collect();
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let child = serve(&server, WARM);
            visit_in_turn(server.local_addr().unwrap(), WARM);
            ended([child]);
            // It never let up.
            flood.into_iter().for_each(end);
        });
    });
}
