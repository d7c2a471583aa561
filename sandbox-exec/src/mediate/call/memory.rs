//! Memory of a caller. The caller may change it at any time, so each value is read only once.

#![expect(unsafe_code, reason = "the kernel copies between this process's memory and another's")]

use std::ffi::CString;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::libc::{self, iovec, pid_t};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mediate) struct Range {
    pub(super) start: u64,
    pub(super) length: usize,
}

/// Maximum number of memory ranges in one read (`UIO_MAXIOV`, linux/uio.h).
pub(super) const MAX_RANGES: usize = 1024;

/// Smallest page size of all architectures.
const PAGE: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(in crate::mediate) struct Memory(pub(in crate::mediate) pid_t);

impl Memory {
    pub(in crate::mediate) fn read<const N: usize>(self, start: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.read_into(&[Range { start, length: N }], &mut bytes)?;
        Ok(bytes)
    }

    /// Reads `length` bytes; the length must already be bounded.
    pub(in crate::mediate) fn read_vec(self, start: u64, length: usize) -> Result<Vec<u8>, Errno> {
        self.gather(&[Range { start, length }])
    }

    /// Reads a C string. Fails with `too_long` if the first `most` bytes have no null byte. Reads page by page, since
    /// the memory after the string may not be mapped.
    pub(in crate::mediate) fn read_string(
        self,
        start: u64,
        most: usize,
        too_long: Errno,
    ) -> Result<CString, Errno> {
        let mut bytes = vec![];
        while bytes.len() < most {
            let at = start.wrapping_add(bytes.len() as u64);
            let rest_of_page = PAGE - usize::try_from(at % PAGE as u64).unwrap_or(0);
            let mut more = self.read_vec(at, rest_of_page.min(most - bytes.len()))?;
            let end = more.iter().position(|&byte| byte == 0);
            more.truncate(end.unwrap_or(more.len()));
            bytes.extend(more);
            if end.is_some() {
                return CString::new(bytes).map_err(|_| Errno::EFAULT);
            }
        }
        Err(too_long)
    }

    pub(in crate::mediate) fn gather(self, ranges: &[Range]) -> Result<Vec<u8>, Errno> {
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
        // SAFETY: the kernel writes at most `bytes.len()` bytes to `bytes`; the other addresses are not this
        // process's.
        let read = unsafe {
            libc::process_vm_readv(self.0, &raw const local, 1, remote.as_ptr(), remote.len() as u64, 0)
        };
        match Errno::result(read) {
            Ok(read) if usize::try_from(read) == Ok(bytes.len()) => Ok(()),
            // A short read: the next page is not mapped.
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

    pub(in crate::mediate) fn write(self, start: u64, bytes: &[u8]) -> Result<(), Errno> {
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
    fn a_string_ends_at_its_null_byte_even_where_nothing_follows() {
        let read = |bytes: &[u8], most| own().read_string(bytes.as_ptr().addr() as u64, most, Errno::ERANGE);
        assert_eq!(read(b"one\0two", 7).unwrap().as_bytes(), b"one");
        assert_eq!(read(b"one\0", 3), Err(Errno::ERANGE));
        let long = [&[b'x'; 9000][..], &[0]].concat();
        assert_eq!(read(&long, 9001).unwrap().as_bytes().len(), 9000);
        // SAFETY: two pages of this process's own, of which the second is given back.
        let last = unsafe {
            let (writable, private) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let pages = libc::mmap(std::ptr::null_mut(), 1 << 17, writable, private, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            let end = pages.byte_add(1 << 16);
            assert_eq!(libc::munmap(end, 1 << 16), 0);
            end.byte_sub(3).cast::<u8>()
        };
        let at = last.addr() as u64;
        // SAFETY: the last three bytes of what is left.
        unsafe { last.copy_from_nonoverlapping(c"ab".to_bytes_with_nul().as_ptr(), 3) };
        assert_eq!(own().read_string(at, 4096, Errno::ERANGE).unwrap().as_bytes(), b"ab");
        // SAFETY: the same.
        unsafe { last.copy_from_nonoverlapping(b"abc".as_ptr(), 3) };
        assert_eq!(own().read_string(at, 4096, Errno::ERANGE), Err(Errno::EFAULT));
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
