use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use ipc::confinement::{BrokerReport, Confinement, Order, TierChoice};
use ipc::id::Generation;
use ipc::pipe::{FrameReader, Outgoing};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::unistd::pipe2;

use super::place::Place;

pub(crate) fn order(place: &Place) -> Confinement {
    let project = place.path("project");
    let tier = if place.full() { TierChoice::Full } else { TierChoice::Floor };
    Confinement { tier, ..Confinement::new(super::worker_rights(&project), project.into()) }
}

pub(crate) fn encoded(confinement: &Confinement) -> Vec<u8> {
    let order = Order { confinement: confinement.clone(), arguments: vec![] };
    let mut bytes = vec![];
    Outgoing::new(&mut bytes, Generation(0)).send(&order).unwrap();
    bytes
}

/// Descriptor number above all numbers that a program uses.
const BEYOND: i32 = 64;

/// Passes a descriptor to a command under the number `number`. Before, it gets one from [`BEYOND`] on: if it already
/// had `number`, it would be closed on exec.
pub(crate) fn pass(command: &mut Command, descriptor: impl AsFd, number: i32) {
    assert!(number < BEYOND);
    let beyond = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(BEYOND)).unwrap();
    // SAFETY: the kernel has just opened it for us.
    let beyond = unsafe { OwnedFd::from_raw_fd(beyond) };
    // SAFETY: dup2 is async-signal-safe; the descriptor lives in the closure until the command is dropped.
    unsafe {
        command.pre_exec(move || {
            Errno::result(libc::dup2(beyond.as_raw_fd(), number)).map(drop).map_err(Into::into)
        });
    }
}

/// Runs sandbox-exec with an order on one descriptor. Returns its output, and the reports that it wrote to another one.
pub(crate) fn ordered(place: &Place, rights: &[u8], program: &[&str]) -> (Output, Vec<BrokerReport>) {
    ordered_in(place, rights, program, |_| {})
}

pub(crate) fn ordered_in(
    place: &Place,
    rights: &[u8],
    program: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> (Output, Vec<BrokerReport>) {
    ordered_with(place, rights, &[], program, prepare)
}

pub(crate) fn ordered_with(
    place: &Place,
    rights: &[u8],
    flags: &[&str],
    program: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> (Output, Vec<BrokerReport>) {
    // Another test may start a program at any moment, which must not hold an end of these.
    let [(rights_read, rights_write), (status_read, status_write)] =
        [pipe2(OFlag::O_CLOEXEC).unwrap(), pipe2(OFlag::O_CLOEXEC).unwrap()];
    File::from(rights_write).write_all(rights).unwrap();
    let mut command = place.command(place.path("sandbox-exec"));
    pass(&mut command, rights_read, 20);
    pass(&mut command, status_write, 21);
    command.args(["--rights-fd", "20", "--status-fd", "21"]).args(flags).arg("--").args(program);
    prepare(&mut command);
    let output = command.output().unwrap();
    drop(command);
    let mut incoming = FrameReader::<_, BrokerReport>::new(File::from(status_read), Generation(0));
    let reports = std::iter::from_fn(|| incoming.receive().unwrap()).collect();
    (output, reports)
}
