use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::fchown;

use ipc::confinement::Identity;
use nix::fcntl::OFlag;
use nix::sys::statfs::fstatfs;
use nix::unistd::pipe2;

/// Number that fstatfs(2) returns for anonymous pipes (linux/magic.h).
const PIPEFS_MAGIC: i64 = 0x5049_5045;

/// Returns the reading and the writing end of a new pipe. Both belong to `owner`, who can thus open `/dev/stdout`.
pub(super) fn pipe_of(owner: Option<Identity>) -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
    if let Some(Identity { uid, gid }) = owner {
        fchown(&reader, Some(uid), Some(gid))?;
    }
    Ok((reader, writer))
}

/// True if the stream is an anonymous pipe, through which only the other end of the pipe can be reached.
pub(super) fn is_anonymous_pipe(stream: &impl AsFd) -> io::Result<bool> {
    Ok(fstatfs(stream)?.filesystem_type().0 == PIPEFS_MAGIC)
}
