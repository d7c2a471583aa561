//! Resolution of a path name by name, as in the kernel (`path_resolution(7)`), but with the caller's `/proc/self`.
//!
//! It serves paths over links of `/proc`, such as `/dev/fd/3`, and paths that lead nowhere, so that those fail as they
//! would for the caller. Links of other processes in `/proc` are not followed: the kernel's answer depends on the
//! caller's Landlock domain.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Component;

use nix::errno::Errno;
use nix::fcntl::{open, openat, readlinkat};
use nix::libc::{self, pid_t};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};

use super::Thread;
use super::resolve::{FoundFile, by_path_alone};
use crate::mediate::files::tree;
use crate::mediate::kernel::status::Status;

/// Maximum number of links in one resolution (`MAXSYMLINKS`, linux/namei.h).
const MOST_LINKS: usize = 40;
/// Inode number of the root directory of a `/proc` file system (`PROC_ROOT_INO`, `linux/proc_ns.h`).
const ROOT_OF_PROC: libc::ino_t = 1;

pub(super) fn follow(
    thread: Thread,
    from: Option<OwnedFd>,
    path: &CStr,
    to_the_end: bool,
) -> Result<FoundFile, Errno> {
    let own = [Status::of(thread.0)?.process, thread.0];
    let here = from.map_or_else(root, Ok)?;
    let mut walk = Walk { own, here, held: false, left: VecDeque::new(), links: 0 };
    walk.refuse_others()?;
    walk.put_before(path.to_bytes());
    while let Some(name) = walk.left.pop_front() {
        let follows = to_the_end || !walk.left.is_empty();
        walk.step(&name, follows)?;
        walk.refuse_others()?;
    }
    Ok(FoundFile { file: walk.here, held: walk.held })
}

struct Walk {
    /// Caller's process id and thread id, for `/proc/self` and `/proc/thread-self`.
    own: [pid_t; 2],
    here: OwnedFd,
    held: bool,
    left: VecDeque<Vec<u8>>,
    links: usize,
}

impl Walk {
    fn step(&mut self, name: &[u8], follows: bool) -> Result<(), Errno> {
        let next = openat(&self.here, name, by_path_alone(false), Mode::empty())?;
        if fstat(&next)?.st_mode & libc::S_IFMT != libc::S_IFLNK || !follows {
            (self.here, self.held) = (next, false);
            return Ok(());
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::ELOOP);
        }
        if is_of_proc(&next)? && fstat(&self.here)?.st_ino != ROOT_OF_PROC {
            // The link stands for an open file, which has no path or another path than the link says.
            let held = tree::name(&self.here)?.ends_with("fd");
            self.here = openat(&self.here, name, by_path_alone(true), Mode::empty())?;
            self.held = held;
            return Ok(());
        }
        let target = match (is_of_proc(&next)?, name) {
            (true, b"self") => self.own[0].to_string().into_bytes(),
            (true, b"thread-self") => format!("{}/task/{}", self.own[0], self.own[1]).into_bytes(),
            _ => readlinkat(&next, c"")?.into_vec(),
        };
        if target.starts_with(b"/") {
            self.here = root()?;
        }
        self.put_before(&target);
        Ok(())
    }

    /// Puts a path's names before those that are still to be resolved. A final slash requires a directory.
    fn put_before(&mut self, path: &[u8]) {
        let ends = path.ends_with(b"/").then_some(&b"."[..]);
        let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).chain(ends);
        for name in names.rev() {
            self.left.push_front(name.to_vec());
        }
    }

    /// Fails with `EACCES` if the current directory is another process's in `/proc`.
    fn refuse_others(&self) -> Result<(), Errno> {
        if !is_of_proc(&self.here)? {
            return Ok(());
        }
        let name = tree::name(&self.here)?;
        let process = match name.components().nth(2) {
            Some(Component::Normal(process)) if name.starts_with("/proc") => process,
            None if name.as_os_str().as_bytes() == b"/proc" => return Ok(()),
            _ => return Err(Errno::EACCES),
        };
        let number = process.to_str().and_then(|process| process.parse().ok());
        match number {
            Some(number) if !self.own.contains(&number) => Err(Errno::EACCES),
            _ => Ok(()),
        }
    }
}

fn is_of_proc(file: &OwnedFd) -> Result<bool, Errno> {
    Ok(fstatfs(file)?.filesystem_type() == PROC_SUPER_MAGIC)
}

fn root() -> Result<OwnedFd, Errno> {
    open("/", by_path_alone(true), Mode::empty())
}
