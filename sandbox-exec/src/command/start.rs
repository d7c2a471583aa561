//! Start of a reaper: another process of the worker's program, with exactly the descriptors that it needs.
//!
//! The reaper is in the worker's domain from the start. It is executed by a path that cannot lead to another program
//! (`/proc/self/exe`). It gets no variable of the dynamic loader (ld.so(8)), since commands may write to the
//! directories that such variables name.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use super::REAP;
use crate::system;

const IMAGE: &CStr = c"/proc/self/exe";

pub(super) struct Given<'a> {
    pub(super) null: BorrowedFd<'a>,
    pub(super) output: BorrowedFd<'a>,
    pub(super) status: BorrowedFd<'a>,
    pub(super) request: BorrowedFd<'a>,
    pub(super) domain: BorrowedFd<'a>,
    pub(super) signals: BorrowedFd<'a>,
}

impl Given<'_> {
    // Numbers of the descriptors in the reaper; those of the command are 0 to 2.
    pub(super) const STATUS: RawFd = 3;
    pub(super) const REQUEST: RawFd = 4;
    pub(super) const DOMAIN: RawFd = 5;
    pub(super) const SIGNALS: RawFd = 6;
    const FREE: RawFd = 7;

    fn by_number(&self) -> [(RawFd, BorrowedFd<'_>); 7] {
        [
            (0, self.null),
            (1, self.output),
            (2, self.output),
            (Self::STATUS, self.status),
            (Self::REQUEST, self.request),
            (Self::DOMAIN, self.domain),
            (Self::SIGNALS, self.signals),
        ]
    }
}

pub(super) fn execute(given: &Given<'_>) -> io::Result<Pid> {
    let mut actions = PosixSpawnFileActions::init()?;
    // The sources must not have the numbers of targets, and stay open until the reaper is executed.
    let mut sources: Vec<OwnedFd> = vec![];
    for (number, descriptor) in given.by_number() {
        let source = system::duplicate_above(descriptor, Given::FREE)?;
        actions.add_dup2(source.as_raw_fd(), number)?;
        sources.push(source);
    }
    let arguments = [c"bailiwick-worker".to_owned(), CString::new(REAP)?];
    Ok(posix_spawn(IMAGE, &actions, &signals()?, &arguments, &environment()?)?)
}

/// Returns spawn attributes that block all signals, since a reaper waits for some of them, and that reset SIGCHLD to
/// its default: while SIGCHLD is ignored, the kernel queues none.
fn signals() -> nix::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGCHLD]))?;
    attributes.set_sigmask(&SigSet::all())?;
    Ok(attributes)
}

fn environment() -> io::Result<Vec<CString>> {
    let variables = std::env::vars_os().filter(|(name, _)| !name.as_bytes().starts_with(b"LD_"));
    variables
        .map(|(name, value)| Ok(CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())?))
        .collect()
}
