//! Forbidden calls by which a confinement is tested. Each is harmless if it is allowed.

#![expect(
    unsafe_code,
    reason = "integers, C strings and null pointers, some of which the kernel refuses after it has \
              permitted the call"
)]

use std::ffi::CStr;
use std::io;
use std::ptr;

use nix::libc::{self, c_int, pid_t};

use super::check;

/// Tries to set an extended attribute, with invalid flags. Fails with `EINVAL` if the call is permitted.
pub(crate) fn set_attribute(path: &CStr, name: &CStr) -> io::Result<()> {
    // SAFETY: C strings, and a value of no bytes.
    check(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), ptr::null(), 0, c_int::MAX) }.into())
}

/// Opens a socket, and leaves it open until the process ends.
pub(crate) fn socket(family: c_int, style: c_int) -> io::Result<()> {
    // SAFETY: integers only.
    check(unsafe { libc::socket(family, style | libc::SOCK_CLOEXEC, 0) }.into())
}

/// Starts to trace a process without stopping it; ends when this process does.
pub(crate) fn seize(process: pid_t) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: integers, and pointers that are not followed.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, process, nothing, nothing) })
}

/// Tries to create an `io_uring`, with a bad address. Fails with `EFAULT` if the call is permitted.
pub(crate) fn io_uring() -> io::Result<()> {
    // SAFETY: the kernel refuses the null pointer; nothing is made.
    check(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, ptr::null::<libc::c_void>()) })
}

/// Looks up the session's keyring. Fails with `ENOKEY` if the call is permitted and there is no keyring.
pub(crate) fn keyring() -> io::Result<()> {
    // SAFETY: integers only.
    check(unsafe { libc::syscall(libc::SYS_keyctl, libc::KEYCTL_GET_KEYRING_ID, -3, 0) })
}

/// Tries to take a lease on an invalid descriptor. Fails with `EBADF` if the call is permitted.
pub(crate) fn lease() -> io::Result<()> {
    // SAFETY: integers only.
    check(unsafe { libc::fcntl(-1, libc::F_SETLEASE, libc::F_RDLCK) }.into())
}

/// Tries to mount, with null pointers. Fails with `EFAULT` if the call is permitted.
pub(crate) fn mount() -> io::Result<()> {
    // SAFETY: null pointers, which the kernel refuses.
    check(unsafe { libc::mount(ptr::null(), ptr::null(), ptr::null(), libc::MS_BIND, ptr::null()) }.into())
}
