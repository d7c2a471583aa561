//! Resolution of a caller's file argument: a descriptor, or a path from the caller's directory.
//!
//! The file is opened with `O_PATH`, which has no side effects. The kernel checks search permission for the caller's
//! user, without capabilities.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc::{self, c_int};
use nix::sys::stat::Mode;

use super::Thread;
use super::walk;

#[derive(Debug)]
pub(super) enum ResolvedPlace {
    Open(c_int),
    Directory(c_int),
    Path { directory: c_int, path: CString, follow: bool },
}

#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) file: OwnedFd,
    /// True if the caller named the file by a descriptor, so that the file may be one without a name.
    pub(super) held: bool,
}

pub(super) fn open(thread: Thread, place: &ResolvedPlace) -> Result<FoundFile, Errno> {
    match place {
        ResolvedPlace::Open(number) => Ok(FoundFile { file: thread.file(*number)?, held: true }),
        ResolvedPlace::Directory(number) => {
            Ok(FoundFile { file: thread.directory(*number)?, held: *number != libc::AT_FDCWD })
        }
        ResolvedPlace::Path { directory, path, follow } => {
            let absolute = path.to_bytes().starts_with(b"/");
            let directory = if absolute { None } else { Some(thread.directory(*directory)?) };
            look_up(directory.as_ref(), path, *follow)
                .or_else(|_| walk::follow(thread, directory, path, *follow))
        }
    }
}

/// Lets the kernel resolve a path, but without links of `/proc` that stand for open files: here they would be this
/// process's. A path with such a link fails, and is then walked name by name (`walk`). A path by `/proc/self` is
/// harmless: it either ends in `/proc`, where nothing can be changed, or leads all processes to the same file.
pub(super) fn look_up(directory: Option<&OwnedFd>, path: &CStr, follow: bool) -> Result<FoundFile, Errno> {
    let directory = directory.map_or(AT_FDCWD, OwnedFd::as_fd);
    let how = OpenHow::new().flags(by_path_alone(follow)).resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(directory, path, how).map(|file| FoundFile { file, held: false })
}

pub(super) fn by_path_alone(follow: bool) -> OFlag {
    let link = if follow { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    OFlag::O_PATH | OFlag::O_CLOEXEC | link
}

impl Thread {
    /// Opens the file of a caller's descriptor. Fails with `EBADF` for an `O_PATH` descriptor, which has a link in
    /// `/proc` without access bits.
    fn file(self, number: c_int) -> Result<OwnedFd, Errno> {
        let link = self.descriptor(number);
        match fs::symlink_metadata(&link) {
            Ok(shown) if shown.mode() & 0o700 == 0 => Err(Errno::EBADF),
            _ => opened(&link),
        }
    }

    fn directory(self, number: c_int) -> Result<OwnedFd, Errno> {
        match number {
            libc::AT_FDCWD => opened(&format!("/proc/{}/cwd", self.0)),
            number => opened(&self.descriptor(number)),
        }
    }

    /// Returns a descriptor's path in `/proc`, that of the thread: threads can have descriptor tables of their own.
    fn descriptor(self, number: c_int) -> String {
        format!("/proc/{}/fd/{number}", self.0)
    }
}

/// Opens the file of a link in `/proc`. `EBADF` if the descriptor is closed, `EPERM` if the process is not dumpable.
fn opened(link: &str) -> Result<OwnedFd, Errno> {
    nix::fcntl::open(link, by_path_alone(true), Mode::empty()).map_err(|errno| match errno {
        Errno::ENOENT => Errno::EBADF,
        Errno::EACCES => Errno::EPERM,
        other => other,
    })
}
