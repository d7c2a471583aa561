//! Resolves the place that a caller means: by a descriptor of its own, or by a path from its directory.
//!
//! The file is opened by its path alone (`O_PATH`), without side effects. The kernel checks search
//! permission, on threads that have the caller's user and no capability.

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
    /// Open file, which must be open for more than its path.
    Open(c_int),
    /// Directory or other file of a descriptor, or the working directory.
    Directory(c_int),
    /// File that a path leads to from a directory.
    Path { directory: c_int, path: CString, follow: bool },
}

#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) file: OwnedFd,
    /// True if the place was a descriptor of the caller's: then the file may have no name.
    pub(super) held: bool,
}

/// Opens the file that a caller means.
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

/// Lets the kernel resolve a path, if it has no link in `/proc` that stands for an open file, which could be
/// one of this process's. A path with such a link can fail in any way here, and is then walked. A path that
/// only passes by `/proc/self` either ends in `/proc`, where nothing can be changed, or leads to the same
/// file for all processes.
pub(super) fn look_up(directory: Option<&OwnedFd>, path: &CStr, follow: bool) -> Result<FoundFile, Errno> {
    let directory = directory.map_or(AT_FDCWD, OwnedFd::as_fd);
    let how = OpenHow::new().flags(by_path_alone(follow)).resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(directory, path, how).map(|file| FoundFile { file, held: false })
}

/// Flags that open a file without side effects.
pub(super) fn by_path_alone(follow: bool) -> OFlag {
    let link = if follow { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    OFlag::O_PATH | OFlag::O_CLOEXEC | link
}

impl Thread {
    /// Opens a file that the thread has open. `/proc` shows by the mode of a link the access that a
    /// descriptor is open for: no bits, if for its path alone.
    fn file(self, number: c_int) -> Result<OwnedFd, Errno> {
        let link = self.descriptor(number);
        match fs::symlink_metadata(&link) {
            Ok(shown) if shown.mode() & 0o700 == 0 => Err(Errno::EBADF),
            _ => opened(&link),
        }
    }

    /// Returns the directory where a relative path starts.
    fn directory(self, number: c_int) -> Result<OwnedFd, Errno> {
        match number {
            libc::AT_FDCWD => opened(&format!("/proc/{}/cwd", self.0)),
            number => opened(&self.descriptor(number)),
        }
    }

    /// Returns the path of a descriptor in `/proc`, by thread, since each thread can have a table of its own.
    fn descriptor(self, number: c_int) -> String {
        format!("/proc/{}/fd/{number}", self.0)
    }
}

/// Opens the file that a link in `/proc` stands for. The link is missing if the descriptor is not open, and
/// inaccessible if the process is not dumpable.
fn opened(link: &str) -> Result<OwnedFd, Errno> {
    nix::fcntl::open(link, by_path_alone(true), Mode::empty()).map_err(|errno| match errno {
        Errno::ENOENT => Errno::EBADF,
        Errno::EACCES => Errno::EPERM,
        other => other,
    })
}
