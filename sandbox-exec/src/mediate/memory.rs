//! A caller's memory. Whatever is there may change at any time: each value is read once, and used as it was read.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::libc::{self, iovec, pid_t};

/// Bytes at an address of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The address.
    pub(super) start: u64,
    /// How many.
    pub(super) length: usize,
}

/// The most ranges of one read (`UIO_MAXIOV`, linux/uio.h).
pub(super) const MAX_RANGES: usize = 1024;

/// The memory of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory(pub(super) pid_t);

impl Memory {
    /// Reads `N` bytes.
    pub(super) fn read<const N: usize>(self, start: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.read_into(&[Range { start, length: N }], &mut bytes)?;
        Ok(bytes)
    }

    /// Reads `length` bytes; whoever asks has bounded them.
    pub(super) fn read_vec(self, start: u64, length: usize) -> Result<Vec<u8>, Errno> {
        self.gather(&[Range { start, length }])
    }

    /// Reads what all the ranges hold, in a row.
    pub(super) fn gather(self, ranges: &[Range]) -> Result<Vec<u8>, Errno> {
        let length = ranges.iter().map(|range| range.length).sum();
        let mut bytes = vec![];
        bytes.try_reserve_exact(length).map_err(|_| Errno::ENOMEM)?;
        bytes.resize(length, 0);
        self.read_into(ranges, &mut bytes)?;
        Ok(bytes)
    }

    fn read_into(self, ranges: &[Range], bytes: &mut [u8]) -> Result<(), Errno> {
        let remote: Vec<iovec> = ranges
            .iter()
            .map(|range| iovec { iov_base: pointer(range.start), iov_len: range.length })
            .collect();
        let local = iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: the kernel writes at most `bytes.len()` bytes to `bytes`; the other addresses are not this process's.
        let read = unsafe {
            libc::process_vm_readv(self.0, &raw const local, 1, remote.as_ptr(), remote.len() as u64, 0)
        };
        match Errno::result(read) {
            Ok(read) if usize::try_from(read) == Ok(bytes.len()) => Ok(()),
            // Less than was asked for: what follows is not mapped.
            Ok(_) => Err(Errno::EFAULT),
            // A container's profile may deny the call, and allow the file.
            Err(Errno::EPERM | Errno::ENOSYS) => self.read_file(ranges, bytes),
            Err(errno) => Err(errno),
        }
    }

    fn read_file(self, ranges: &[Range], mut bytes: &mut [u8]) -> Result<(), Errno> {
        let memory = OpenOptions::new().read(true).open(self.file()).map_err(|_| Errno::EPERM)?;
        for range in ranges {
            let (here, rest) = bytes.split_at_mut(range.length);
            memory.read_exact_at(here, range.start).map_err(|_| Errno::EFAULT)?;
            bytes = rest;
        }
        Ok(())
    }

    /// Writes bytes.
    pub(super) fn write(self, start: u64, bytes: &[u8]) -> Result<(), Errno> {
        let local = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let remote = iovec { iov_base: pointer(start), iov_len: bytes.len() };
        // SAFETY: the kernel reads `bytes.len()` bytes from `bytes`; the other address is not this process's.
        let written =
            unsafe { libc::process_vm_writev(self.0, &raw const local, 1, &raw const remote, 1, 0) };
        match Errno::result(written) {
            Ok(written) if usize::try_from(written) == Ok(bytes.len()) => Ok(()),
            Ok(_) => Err(Errno::EFAULT),
            Err(Errno::EPERM | Errno::ENOSYS) => {
                let memory = OpenOptions::new().write(true).open(self.file()).map_err(|_| Errno::EPERM)?;
                memory.write_all_at(bytes, start).map_err(|_| Errno::EFAULT)
            }
            Err(errno) => Err(errno),
        }
    }

    fn file(self) -> String {
        format!("/proc/{}/mem", self.0)
    }
}

/// An address in another process.
#[expect(clippy::cast_possible_truncation, reason = "both architectures have 64-bit addresses")]
fn pointer(address: u64) -> *mut libc::c_void {
    address as usize as *mut libc::c_void
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Memory {
        Memory(std::process::id().cast_signed())
    }

    #[test]
    fn ranges_are_read_in_a_row() {
        let (first, second) = (*b"one", *b"two");
        let at = |bytes: &[u8; 3]| Range { start: bytes.as_ptr().addr() as u64, length: 3 };
        assert_eq!(own().gather(&[at(&second), at(&first)]).unwrap(), b"twoone");
        let mut bytes = [0; 6];
        own().read_file(&[at(&second), at(&first)], &mut bytes).unwrap();
        assert_eq!(&bytes, b"twoone");
    }

    #[test]
    fn what_is_not_mapped_is_a_bad_address() {
        assert_eq!(own().read::<8>(0), Err(Errno::EFAULT));
        assert_eq!(own().read::<8>(u64::MAX - 3), Err(Errno::EFAULT));
        assert_eq!(own().write(16, b"x"), Err(Errno::EFAULT));
        let text = "constant";
        assert_eq!(own().write(text.as_ptr().addr() as u64, b"x"), Err(Errno::EFAULT));
    }
}
