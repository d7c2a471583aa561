//! Process descriptors: system calls that nix does not have.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Opens a descriptor that stands for a child of ours until it is reaped; `pidfd_open(2)`.
pub(super) fn open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    own(i32::try_from(fd).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?)
}

/// Takes a descriptor over that a system call just returned, or its error.
pub(super) fn own(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to exactly the process behind the descriptor; `pidfd_send_signal(2)`.
pub(super) fn signal(pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed, and the descriptor is open.
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_fd().as_raw_fd(), signal as i32, info, 0)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Registers a process descriptor with the runtime: it becomes readable when the process ends.
pub(super) fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?)
}
