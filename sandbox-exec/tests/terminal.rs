//! Tests of the terminal made for a program: it is the controlling terminal, and no other one can be opened.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

use common::order::{encoded, order, pass};
use common::place::{Place, as_each_user};
use ipc::confinement::Confinement;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{OpenptyResult, openpty};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::ttyname;
use sandbox_exec::stage::Stage;

fn run(place: &Place, terminal: bool, script: &str, streams: [Stdio; 3]) -> i32 {
    fs::write(place.path("rights"), encoded(&Confinement { terminal, ..order(place) })).unwrap();
    let rights = File::open(place.path("rights")).unwrap();
    let mut command = place.command(place.path("sandbox-exec"));
    command.args(["--rights-fd", "20", "--", "/bin/bash", "-c", script]);
    let [stdin, stdout, stderr] = streams;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    pass(&mut command, rights, 20);
    command.status().unwrap().code().unwrap()
}

fn terminal_of_everyone() -> OpenptyResult {
    let pty = openpty(None, None).unwrap();
    fchmod(&pty.slave, Mode::from_bits_truncate(0o666)).unwrap();
    pty
}

fn on_a_terminal(place: &Place, terminal: bool, script: &str) -> String {
    let pty = terminal_of_everyone();
    let streams = [(); 3].map(|()| pty.slave.try_clone().unwrap().into());
    run(place, terminal, script, streams);
    drop(pty.slave);
    let mut said = vec![];
    // Linux ends a terminal that nobody has open any more with EIO.
    let _ = File::from(pty.master).read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

#[test]
fn the_terminal_is_the_sessions_own() {
    as_each_user(|place| {
        let script = "echo own > /dev/tty && echo named > /dev/stderr && echo again > $(tty) && \
            [ $(ps -o tpgid= -p $$) = $$ ] && echo foreground";
        let said = on_a_terminal(place, true, script);
        assert_eq!(said, "own\r\nnamed\r\nagain\r\nforeground\r\n", "{}", place.tier);
        let without = on_a_terminal(place, false, script);
        let missing = if place.full() { "No such device or address" } else { "Permission denied" };
        assert!(without.contains(&format!("/dev/tty: {missing}")), "{}: {without}", place.tier);
    });
}

/// Tests that a program cannot write to a host's terminal by its path. (A terminal inside may have the same path.)
#[test]
fn another_terminal_cannot_be_opened_by_its_name() {
    as_each_user(|place| {
        let users = terminal_of_everyone();
        fcntl(&users.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let typed = || File::from(users.master.try_clone().unwrap()).read(&mut [0; 16]).is_ok();
        let script = format!("echo typed > {}; echo tried", ttyname(&users.slave).unwrap().display());
        assert!(place.unconfined(&script).status.success() && typed());
        let said = on_a_terminal(place, true, &script);
        assert!(said.ends_with("tried\r\n") && said.lines().count() == 2, "{}: {said}", place.tier);
        assert!(!typed(), "{}", place.tier);
    });
}

#[test]
fn without_a_terminal_there_is_none_to_control() {
    as_each_user(|place| {
        let null = || [Stdio::null(), Stdio::null(), Stdio::null()];
        assert_eq!(run(place, true, "true", null()), i32::from(Stage::Session.code()), "{}", place.tier);
        assert_eq!(run(place, false, "true", null()), 0, "{}", place.tier);
    });
}
