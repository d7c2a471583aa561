//! Inherited descriptors: nothing that the caller left open reaches the program.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::libc;

use crate::system::{self, check};

/// Closes every descriptor above 2 but `keep`, which are closed on exec from now on.
pub fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut first = 3;
    let mut kept = keep.to_vec();
    kept.sort_unstable();
    for descriptor in kept.into_iter().map(RawFd::cast_unsigned) {
        if descriptor > first {
            close_range(first, descriptor - 1)?;
        }
        first = descriptor + 1;
    }
    close_range(first, u32::MAX)?;
    keep.iter().try_for_each(|&descriptor| close_on_exec(descriptor))
}

/// Some container profiles are older than `close_range(2)` and refuse it: then one by one.
fn close_range(first: u32, last: u32) -> io::Result<()> {
    match system::close_range(first, last, false) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            close_each(first, last)
        }
        other => other,
    }
}

fn close_each(first: u32, last: u32) -> io::Result<()> {
    let mut open = vec![];
    for entry in fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    for descriptor in open.into_iter().filter(|descriptor| (first..=last).contains(descriptor)) {
        // SAFETY: nothing in this process owns a descriptor that it inherited and was not told of. The listing's own
        // descriptor is closed by now: closing it again only fails.
        unsafe { libc::close(descriptor.cast_signed()) };
    }
    Ok(())
}

fn close_on_exec(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: sets a flag of a descriptor, and fails on one that is not open.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) }.into())
}

/// Takes ownership of an inherited descriptor.
///
/// # Safety
///
/// It must have been named on the command line once, and be owned by nothing else.
pub unsafe fn take(descriptor: RawFd) -> OwnedFd {
    // SAFETY: by the caller's promise.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}
