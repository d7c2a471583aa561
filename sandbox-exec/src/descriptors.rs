#![expect(unsafe_code, reason = "descriptors are owned, closed and marked by number")]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc;

use crate::system::{self, check};

/// Takes over the inherited descriptors `numbers`; closes all others above 2. A second call fails (`EBADF`).
pub fn inherit(numbers: &[RawFd]) -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let different: BTreeSet<_> = numbers.iter().collect();
    if different.len() < numbers.len() || TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Errno::EBADF.into());
    }
    close_all_but(numbers)?;
    // SAFETY: they differ and are open; nothing of this process owns them, since this is done once, at its
    // beginning.
    Ok(numbers.iter().map(|&number| unsafe { OwnedFd::from_raw_fd(number) }).collect())
}

/// Closes every descriptor above 2 except those in `keep`, and sets close-on-exec on the kept ones.
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

/// Closes descriptors. Successive numbers are closed with one call, which is faster.
pub(crate) fn close_together(descriptors: impl Iterator<Item = OwnedFd>) {
    let mut numbers: Vec<u32> = descriptors.map(IntoRawFd::into_raw_fd).map(RawFd::cast_unsigned).collect();
    numbers.sort_unstable();
    for run in numbers.chunk_by(|one, next| one + 1 == *next) {
        if let &[first, .., last] | &[first @ last] = run {
            // They are open, and are closed even if a file system reports an error (close_range(2)).
            let _ = close_range(first, last);
        }
    }
}

/// Closes the descriptors `first..=last`; one by one if an old container profile denies `close_range(2)`.
fn close_range(first: u32, last: u32) -> io::Result<()> {
    match system::close_range(first, last) {
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
        // SAFETY: nothing in this process owns a descriptor that it inherited and was not told of. The
        // listing's own descriptor is closed by now: closing it again only fails.
        unsafe { libc::close(descriptor.cast_signed()) };
    }
    Ok(())
}

fn close_on_exec(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: sets a flag of a descriptor, and fails on one that is not open.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) }.into())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_is_closed_together_is_closed_and_nothing_else() {
        let open = || OwnedFd::from(File::open("/dev/null").unwrap());
        // High above the descriptors of other tests of this process.
        let at = |number: RawFd| {
            let descriptor = open();
            // SAFETY: a number, and a descriptor that is open; the new one is nobody else's.
            unsafe {
                OwnedFd::from_raw_fd(libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number))
            }
        };
        let [one, kept, two, three] = [900, 901, 902, 903].map(at);
        let numbers = [&one, &two, &three].map(AsRawFd::as_raw_fd);
        close_together([three, one, two].into_iter());
        // SAFETY: asks for flags of a number.
        let is_open = |number| unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
        assert!(numbers.into_iter().all(|number| !is_open(number)) && is_open(kept.as_raw_fd()));
        close_together(std::iter::empty());
    }
}
