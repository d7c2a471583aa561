//! Handing the mediation listener from the program, whose filter it belongs to, to the broker.
//!
//! The filter traps the very calls that pass descriptors over sockets, so none is used: the program begins with the broker's
//! own table of descriptors, attaches the filter, and leaves the table, in which the listener then remains. The broker
//! closes none of these descriptors until it was told the number.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc::{self, c_long};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::Pid;

use crate::mediate::Filter;
use crate::system::{self, check};

/// Told where there is no filter; a number is told from [`FIRST`] on. Zero cannot be told.
const NONE: u64 = 1;
const FIRST: u64 = NONE + 1;

/// Where the number is told.
///
/// No pipe: who is woken by one is taken to follow on a writer that sleeps, and takes that one's processor, though the program
/// goes on.
#[derive(Debug)]
pub(crate) struct Handover(EventFd);

impl Handover {
    /// Made before the fork.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?))
    }

    /// The program's side: attaches the filter, if there is one, and leaves the broker's table. Nothing may have been closed
    /// before, nor be if it fails. Needs `no_new_privs`.
    pub(crate) fn give(&self, filter: Option<&Filter>) -> io::Result<()> {
        // Its number stays open in the broker's table; here it closes on exec.
        let listener =
            filter.map(Filter::attach).transpose().map(|listener| listener.map(IntoRawFd::into_raw_fd));
        // Whatever happened: from now on this process closes only what is its own.
        system::leave_descriptors()?;
        let told = listener?.map_or(NONE, |number| FIRST + u64::from(number.cast_unsigned()));
        Ok(self.0.write(told).map(drop)?)
    }

    /// The broker's side: the listener, or nothing if there is no filter, or the program, a child, ended before it was told.
    pub(crate) fn take(self, program: Pid) -> io::Result<Option<OwnedFd>> {
        // Adding to the shared table harms nobody. Not by SIGCHLD: that can be another child's, of whoever this process was before
        // it was executed.
        let process = system::open_process(program.as_raw())?;
        let mut ready =
            [PollFd::new(self.0.as_fd(), PollFlags::POLLIN), PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut ready, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) if ready[0].any() == Some(true) => break,
                Ok(_) => return Ok(None),
            }
        }
        let number =
            self.0.read()?.checked_sub(FIRST).map(RawFd::try_from).transpose().map_err(io::Error::other)?;
        // SAFETY: the child put it into this table, and nothing else knows of it.
        Ok(number.map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
    }
}

/// As fork(2), but that the child has the caller's own table of descriptors. Nothing in the child.
///
/// # Safety
///
/// The caller must have one thread, and neither process may close what was open before the child has left the table.
pub(crate) unsafe fn fork_sharing_descriptors() -> io::Result<Option<Pid>> {
    let flags = c_long::from(libc::CLONE_FILES | libc::SIGCHLD);
    // SAFETY: without a stack the child goes on with a copy of this one, as after fork(2).
    forked(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })
}

/// The same, in a control group (`clone3(2)`, Linux 5.7).
///
/// # Safety
///
/// As above.
pub(crate) unsafe fn fork_into(group: BorrowedFd<'_>) -> io::Result<Option<Pid>> {
    let arguments = Clone {
        flags: u64::from(libc::CLONE_FILES.cast_unsigned()) | CLONE_INTO_CGROUP,
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        cgroup: u64::from(group.as_raw_fd().cast_unsigned()),
        ..Clone::default()
    };
    // SAFETY: the kernel reads the structure; without a stack the child goes on with a copy of this one.
    forked(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<Clone>()) })
}

/// `CLONE_INTO_CGROUP` (linux/sched.h).
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` (linux/sched.h).
#[derive(Default)]
#[repr(C, align(8))]
struct Clone {
    flags: u64,
    process: u64,
    child_thread: u64,
    parent_thread: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    threads: u64,
    threads_size: u64,
    cgroup: u64,
}

/// What such a call returns: in the parent the child.
fn forked(answer: c_long) -> io::Result<Option<Pid>> {
    check(answer)?;
    Ok(libc::pid_t::try_from(answer).ok().filter(|pid| *pid > 0).map(Pid::from_raw))
}
