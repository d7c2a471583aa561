//! Calls on files that nix has only for glibc, or not at all.

#![expect(unsafe_code, reason = "these calls take C strings and a structure that the kernel fills in")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use nix::NixPath;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint};

/// Flag of `renameat2(2)` that makes it fail if the new name exists (linux/fs.h).
const RENAME_NOREPLACE: c_uint = 1;

/// Returns the times of birth and last change of a file or link. Rust reads the birth only with glibc.
pub(crate) fn times(path: &Path) -> io::Result<libc::statx> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    Ok(statx(libc::AT_FDCWD, &name, libc::AT_SYMLINK_NOFOLLOW, libc::STATX_BTIME | libc::STATX_CTIME)?)
}

/// Returns the time of a file's birth in nanoseconds since the epoch; `None` if it is unknown.
pub fn born_ns(file: BorrowedFd<'_>) -> Option<i64> {
    let status = statx(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH, libc::STATX_BTIME).ok()?;
    let born = (status.stx_mask & libc::STATX_BTIME != 0).then_some(status.stx_btime)?;
    born.tv_sec.checked_mul(1_000_000_000)?.checked_add(i64::from(born.tv_nsec))
}

/// True if a file has an extended attribute with this value (`getxattr(2)`).
pub(crate) fn has_attribute(path: &Path, name: &CStr, value: &[u8]) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut found = vec![0_u8; value.len()];
    // SAFETY: the kernel reads two C strings and fills in at most that many bytes; a longer value is an
    // error.
    let read =
        unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), found.as_mut_ptr().cast(), found.len()) };
    usize::try_from(read).is_ok_and(|read| found.get(..read) == Some(value))
}

/// Writes the names of an open file's extended attributes to `names`, each with a null byte. Returns their total size
/// in bytes (`flistxattr(2)`).
pub fn attribute_names(file: BorrowedFd<'_>, names: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel fills in at most as many bytes as there are.
    let length = unsafe { libc::flistxattr(file.as_raw_fd(), names.as_mut_ptr().cast(), names.len()) };
    usize::try_from(length).map_err(|_| Errno::last())
}

/// Reads an extended attribute into `value`. Returns the size in bytes (`fgetxattr(2)`).
pub fn attribute(file: BorrowedFd<'_>, name: &CStr, value: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: a C string, and the kernel fills in at most as many bytes as there are.
    let length =
        unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    usize::try_from(length).map_err(|_| Errno::last())
}

/// Returns the flags of a file's inode, as `lsattr` shows them (`ioctl_iflags(2)`).
pub fn inode_flags(file: BorrowedFd<'_>) -> Result<c_int, Errno> {
    let mut flags: c_int = 0;
    // SAFETY: the kernel writes an int, whatever the request's name says.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS as _, &raw mut flags) };
    Errno::result(answer).map(|_| flags)
}

/// Returns the id of a file's mount, unique while the file system is mounted (Linux 5.8).
pub(crate) fn mount_of(file: &OwnedFd) -> Result<u64, Errno> {
    let status = statx(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH, libc::STATX_MNT_ID)?;
    if status.stx_mask & libc::STATX_MNT_ID == 0 { Err(Errno::ENOSYS) } else { Ok(status.stx_mnt_id) }
}

/// Calls `statx(2)`. `stx_mask` of the result tells which fields the file system has filled in.
fn statx(directory: c_int, name: &CStr, flags: c_int, wanted: c_uint) -> Result<libc::statx, Errno> {
    // SAFETY: a structure of integers.
    let mut status: libc::statx = unsafe { mem::zeroed() };
    // SAFETY: the name is a C string, and the kernel writes one structure.
    let answer = unsafe { libc::statx(directory, name.as_ptr(), flags, wanted, &raw mut status) };
    Errno::result(answer).map(|_| status)
}

/// Renames a file; never replaces one. Fails with `EEXIST` if the new name exists (`renameat2(2)`), and with `EINVAL`
/// or `ENOSYS` if the kernel or file system cannot check that.
pub fn rename_new<From, To>(directory: BorrowedFd<'_>, from: &From, to: &To) -> Result<(), Errno>
where
    From: ?Sized + NixPath,
    To: ?Sized + NixPath,
{
    let number = directory.as_fd().as_raw_fd();
    let renamed = from.with_nix_path(|from| {
        to.with_nix_path(|to| {
            // SAFETY: two C strings, and integers.
            unsafe {
                libc::syscall(
                    libc::SYS_renameat2,
                    number,
                    from.as_ptr(),
                    number,
                    to.as_ptr(),
                    RENAME_NOREPLACE,
                )
            }
        })
    })??;
    Errno::result(renamed).map(drop)
}

/// Calls `execveat(2)` with `flags` that prevent execution (`AT_EXECVE_CHECK`, Linux 6.14). Fails on older kernels.
pub(crate) fn execute_only_with(name: &CStr, flags: c_int) -> Result<(), Errno> {
    let arguments = [name.as_ptr(), ptr::null()];
    let environment: [*const libc::c_char; 1] = [ptr::null()];
    // SAFETY: the name and both lists end with a null and outlive the call.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_execveat,
            libc::AT_FDCWD,
            name.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            flags,
        )
    };
    Errno::result(asked).map(drop)
}
