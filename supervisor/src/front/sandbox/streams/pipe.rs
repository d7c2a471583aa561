//! Pipes: what they are made by, and what is asked of them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::fchown;

use ipc::confinement::Identity;
use nix::fcntl::OFlag;
use nix::sys::statfs::fstatfs;
use nix::unistd::pipe2;

/// The file system of anonymous pipes; linux/magic.h.
const PIPEFS_MAGIC: i64 = 0x5049_5045;

/// A pipe: its reading and its writing end. It is the owner's: `/dev/stdout` opens it again by its name.
pub(super) fn pipe_of(owner: Option<Identity>) -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
    if let Some(Identity { uid, gid }) = owner {
        fchown(&reader, Some(uid), Some(gid))?;
    }
    Ok((reader, writer))
}

/// Whether it lies in no directory: its descriptors lead to its other end only.
pub(super) fn is_anonymous_pipe(stream: &impl AsFd) -> io::Result<bool> {
    Ok(fstatfs(stream)?.filesystem_type().0 == PIPEFS_MAGIC)
}
