//! What a caller means: by a descriptor of its own, or by a path from where it is.
//!
//! What is found is open by its path alone (`O_PATH`), so that nothing happens to it. Search permission is asked for by the
//! kernel, of threads that have the caller's user and no capability.

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

/// Where a change is to be made.
#[derive(Debug)]
pub(super) enum ResolvedPlace {
    /// On an open file, which must be open for more than its path.
    Open(c_int),
    /// On what a descriptor of a directory is for, or of anything else, or on the working directory.
    Directory(c_int),
    /// On what a path leads to from there.
    Path { directory: c_int, path: CString, follow: bool },
}

/// What was found.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) file: OwnedFd,
    /// Whether a descriptor of the caller's was named: then it may be what has no name.
    pub(super) held: bool,
}

/// Opens what a caller means.
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

/// Has the kernel resolve a path, if it has no link in `/proc` that stands for an open file: that could be one of this process's.
/// Such a path can fail in any way here, and is then walked. A path that only passes by `/proc/self` either ends in `/proc`,
/// where nothing can be changed, or leads to the same for everybody.
pub(super) fn look_up(directory: Option<&OwnedFd>, path: &CStr, follow: bool) -> Result<FoundFile, Errno> {
    let directory = directory.map_or(AT_FDCWD, OwnedFd::as_fd);
    let how = OpenHow::new().flags(by_path_alone(follow)).resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(directory, path, how).map(|file| FoundFile { file, held: false })
}

/// How a file is opened that nothing is to happen to.
pub(super) fn by_path_alone(follow: bool) -> OFlag {
    let link = if follow { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    OFlag::O_PATH | OFlag::O_CLOEXEC | link
}

impl Thread {
    /// A file that it has open. `/proc` shows by the mode of a link what a descriptor is open for: nothing, if for its path alone.
    fn file(self, number: c_int) -> Result<OwnedFd, Errno> {
        let link = self.descriptor(number);
        match fs::symlink_metadata(&link) {
            Ok(shown) if shown.mode() & 0o700 == 0 => Err(Errno::EBADF),
            _ => opened(&link),
        }
    }

    /// Where a relative path begins.
    fn directory(self, number: c_int) -> Result<OwnedFd, Errno> {
        match number {
            libc::AT_FDCWD => opened(&format!("/proc/{}/cwd", self.0)),
            number => opened(&self.descriptor(number)),
        }
    }

    /// Each thread can have a table of its own.
    fn descriptor(self, number: c_int) -> String {
        format!("/proc/{}/fd/{number}", self.0)
    }
}

/// What a link in `/proc` stands for. There is none for a descriptor that is not open, and those of a process that is not dumpable
/// are not for us.
fn opened(link: &str) -> Result<OwnedFd, Errno> {
    nix::fcntl::open(link, by_path_alone(true), Mode::empty()).map_err(|errno| match errno {
        Errno::ENOENT => Errno::EBADF,
        Errno::EACCES => Errno::EPERM,
        other => other,
    })
}
