//! Mount points in a program's own `/tmp` and `/dev`.
//!
//! If an earlier program of the same agent has left a file where a mount point has to be, the file is removed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Opens the mount point `path` beneath `root` with `O_PATH`. Creates it if it is missing.
pub(super) fn place(root: BorrowedFd<'_>, path: &Path, directory: bool) -> io::Result<OwnedFd> {
    let mut here = root.try_clone_to_owned()?;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let name = Path::new(name);
        here = if names.peek().is_some() || directory {
            directory_in(here.as_fd(), name)?
        } else {
            file_in(here.as_fd(), name)?
        };
    }
    Ok(here)
}

fn directory_in(parent: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let open = || openat(parent, name, path_only() | OFlag::O_DIRECTORY, Mode::empty());
    match open() {
        Err(Errno::ENOENT) => {}
        // The agent made a file or a link of this name.
        Err(Errno::ENOTDIR | Errno::ELOOP) => unlinkat(parent, name, UnlinkatFlags::NoRemoveDir)?,
        opened => return Ok(opened?),
    }
    unless_there(mkdirat(parent, name, Mode::from_bits_truncate(0o755)))?;
    Ok(open()?)
}

fn file_in(parent: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let open = || openat(parent, name, path_only(), Mode::empty());
    match open() {
        Err(Errno::ENOENT) => {}
        Err(errno) => return Err(errno.into()),
        // A mount point from before is kept: another running program may have its mount there.
        Ok(found) if is_file(&found)? => return Ok(found),
        Ok(_) => unlinkat(parent, name, UnlinkatFlags::NoRemoveDir)?,
    }
    let create = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    unless_there(openat(parent, name, create, Mode::from_bits_truncate(0o600)).map(drop))?;
    let made = open()?;
    if is_file(&made)? { Ok(made) } else { Err(Errno::EEXIST.into()) }
}

/// Turns `EEXIST` into success: another start of the same agent may have created the file at the same moment.
fn unless_there(made: nix::Result<()>) -> nix::Result<()> {
    match made {
        Err(Errno::EEXIST) => Ok(()),
        made => made,
    }
}

fn is_file(place: &OwnedFd) -> io::Result<bool> {
    Ok(SFlag::from_bits_truncate(fstat(place)?.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG)
}

fn path_only() -> OFlag {
    OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn starts_at_the_same_moment_share_a_place() {
        let root = tempfile::tempdir().unwrap();
        let barrier = Barrier::new(8);
        // A thread that fails goes on as well: the others wait for it.
        let starts = || {
            let root = std::fs::File::open(root.path()).unwrap();
            let made = (0..200).map(|round| {
                barrier.wait();
                let path = |name: &str| format!("{round}/deep/{name}");
                place(root.as_fd(), Path::new(&path("file")), false)?;
                place(root.as_fd(), Path::new(&path("directory")), true).map(drop)
            });
            made.filter_map(Result::err).map(|error| error.to_string()).collect::<Vec<_>>()
        };
        thread::scope(|scope| {
            let started = [(); 8].map(|()| scope.spawn(starts));
            for thread in started {
                assert_eq!(thread.join().unwrap(), Vec::<String>::new());
            }
        });
    }
}
