//! The child that lives in namespaces of its own.

use std::io;

use nix::libc::{self, c_int, c_long};
use nix::unistd::Pid;

use crate::system::check;

/// Which side of the call this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clone {
    /// The caller, and its child.
    Parent(Pid),
    /// The child.
    Child,
}

const FLAGS: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::SIGCHLD;

/// Forks a child into new namespaces, but for that of the network, which takes the kernel longest: the child makes it
/// itself.
///
/// Cloning, rather than `unshare(2)`, leaves the caller where it is and keeps the child dumpable, so that it can be given
/// its ids.
///
/// # Safety
///
/// As with fork(2): the caller must have one thread.
pub(crate) unsafe fn clone() -> io::Result<Clone> {
    // SAFETY: without a stack the child goes on with a copy of this one, as after fork(2).
    let pid = unsafe { libc::syscall(libc::SYS_clone, c_long::from(FLAGS), 0, 0, 0, 0) };
    check(pid)?;
    match libc::pid_t::try_from(pid) {
        Ok(pid @ 1..) => Ok(Clone::Parent(Pid::from_raw(pid))),
        _ => Ok(Clone::Child),
    }
}
