//! Tests of the processes, terminals and network that a program sees, and of the end of its processes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use ipc::confinement::BrokerReport;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::order::{encoded, order, ordered};
use crate::common::place::Place;
use crate::run::{in_full, said};

#[test]
fn a_program_on_a_terminal_of_its_own_works() {
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("skipped: not on this machine: script(1)");
        return;
    }
    in_full(|place| {
        let output = said(place, |_| {}, "script -qec 'tty; echo typed > /dev/tty' /dev/null");
        assert!(output.contains("/dev/pts/0") && output.contains("typed"), "{output}");
    });
}

#[test]
fn no_process_of_the_host_is_visible() {
    in_full(|place| {
        let me = std::process::id();
        let script = format!(
            "ls -d /proc/[0-9]* | wc -l; test -e /proc/{me} || echo unseen; kill -0 {me} || echo safe"
        );
        let output = said(place, |_| {}, &script);
        assert!(output.lines().next().unwrap().parse::<u32>().unwrap() < 8, "{output}");
        assert!(output.ends_with("unseen\nsafe\n"), "{output}");
    });
}

#[test]
fn the_reported_pid_is_the_hosts() {
    in_full(|place| {
        let mut confinement = order(place);
        confinement.environment.pass.push("LC_ALL".into());
        let fifo = "mkfifo up; echo > up; read x < down";
        drop(place.unconfined("rm -f up down; mkfifo down"));
        let encoded = encoded(&confinement);
        std::thread::scope(|scope| {
            let done = scope.spawn(|| ordered(place, &encoded, &["/bin/bash", "-c", fifo]));
            drop(place.unconfined("until [ -p up ]; do :; done; cat up"));
            let hosts: Vec<_> = sandboxed_bash(place);
            File::options().write(true).open(place.path("project/down")).unwrap().write_all(b"x\n").unwrap();
            let (_, reports) = done.join().unwrap();
            let Some(BrokerReport::Started { pid, .. }) = reports.first() else { panic!("{reports:?}") };
            assert_eq!(hosts, [*pid]);
        });
    });
}

/// Returns the host's pids of those processes in the project that have pid 2 in their own pid namespace.
fn sandboxed_bash(place: &Place) -> Vec<u32> {
    let project = place.path("project");
    let numbers =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let here = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == project);
    let second = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t2"))
    };
    numbers.filter(here).filter(second).collect()
}

#[test]
fn loopback_is_its_own_and_works() {
    if !Path::new("/usr/bin/python3").exists() {
        eprintln!("skipped: needs /usr/bin/python3");
        return;
    }
    in_full(|place| {
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = host.local_addr().unwrap().port();
        let script = format!(
            "/usr/bin/python3 -c \"
import socket
s = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(s.getsockname())
c.sendall(b'hi')
print(s.accept()[0].recv(2).decode())
try:
    socket.create_connection(('127.0.0.1', {port}))
except ConnectionRefusedError:
    print('refused')
\""
        );
        assert_eq!(said(place, |_| {}, &script), "hi\nrefused\n");
        host.set_nonblocking(true).unwrap();
        assert_eq!(host.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    });
}

/// Starts daemons in a sandbox, calls `end`, and waits until every process of the sandbox is gone.
fn nothing_lives_after(place: &Place, end: impl Fn(Pid)) {
    let script =
        "setsid sleep 1000 & (setsid bash -c 'trap \"\" TERM HUP INT; sleep 1000' &) ; echo ready; wait";
    let mut command = place.sandbox(&[]);
    let mut child = command.args(["/bin/bash", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    end(Pid::from_raw(child.id().cast_signed()));
    // Every process inside holds the pipe: its end is theirs.
    output.read_to_end(&mut vec![]).unwrap();
    child.wait().unwrap();
}

fn child_of(parent: Pid) -> Pid {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap())
}

#[test]
fn killing_the_stub_init_or_the_program_leaves_nothing() {
    in_full(|place| {
        let kill = |pid| kill(pid, Signal::SIGKILL).unwrap();
        nothing_lives_after(place, kill);
        nothing_lives_after(place, |stub| kill(child_of(stub)));
        nothing_lives_after(place, |stub| kill(child_of(child_of(stub))));
    });
}
