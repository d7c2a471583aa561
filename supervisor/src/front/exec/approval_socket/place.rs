use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::geteuid;

/// A listening approval socket. Dropping the value removes the socket's file.
#[derive(Debug)]
pub(in crate::front::exec) struct ApprovalSocket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    inode: (u64, u64),
}

#[derive(Debug, thiserror::Error)]
pub(in crate::front::exec) enum SocketError {
    #[error("--approval-socket {0}: the path exists already; name a new path")]
    Exists(PathBuf),
    #[error("--approval-socket {path}: {source}")]
    Place { path: PathBuf, source: io::Error },
    #[error(
        "--approval-socket: other users can change {0}\n  hint: use a directory of your own, with mode 0700"
    )]
    Open(PathBuf),
    #[error("--approval-socket: an agent can write in {0}\n  hint: use a directory outside the project")]
    Agents(PathBuf),
    #[error("--approval-socket {path}: cannot listen: {source}")]
    Listen { path: PathBuf, source: io::Error },
}

impl ApprovalSocket {
    /// Creates the socket. Fails if agents may write its directory, which then is below one of `agents`, or other users
    /// may.
    pub(in crate::front::exec) fn listen(path: &Path, agents: &[PathBuf]) -> Result<Self, SocketError> {
        let path = settled(path)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        check(directory)?;
        if let Some(root) = agents.iter().find(|root| directory.starts_with(root)) {
            return Err(SocketError::Agents(root.clone()));
        }
        let listener = open(&path).map_err(|error| match error {
            nix::Error::EADDRINUSE => SocketError::Exists(path.clone()),
            error => SocketError::Listen { path: path.clone(), source: error.into() },
        })?;
        let meta = fs::symlink_metadata(&path);
        let meta = meta.map_err(|source| SocketError::Place { path: path.clone(), source })?;
        Ok(Self { listener, path, inode: (meta.dev(), meta.ino()) })
    }
}

impl Drop for ApprovalSocket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Resolves symbolic links in the directory of `path`. A link that is changed later has no effect on the result.
fn settled(path: &Path) -> Result<PathBuf, SocketError> {
    let failed = |source| SocketError::Place { path: path.to_owned(), source };
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::canonicalize(parent).map_err(failed)?.join(name))
}

/// Fails if anybody but this user and root can replace the directory or one of its parents.
fn check(directory: &Path) -> Result<(), SocketError> {
    for place in directory.ancestors() {
        let meta = fs::symlink_metadata(place);
        let meta = meta.map_err(|source| SocketError::Place { path: place.to_owned(), source })?;
        let own = meta.uid() == geteuid().as_raw() || meta.uid() == 0;
        // In a sticky directory only the owner of a file can rename it.
        let closed = meta.mode() & 0o022 == 0 || meta.mode() & 0o1000 != 0;
        if !own || !closed {
            return Err(SocketError::Open(place.to_owned()));
        }
    }
    Ok(())
}

/// Creates the socket's file, with mode 0600 at its creation: bind(2) gives the file the mode of the socket's
/// descriptor (`unix_bind_bsd` in Linux).
fn open(path: &Path) -> nix::Result<UnixListener> {
    let socket = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        None,
    )?;
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&socket, Backlog::new(4)?)?;
    Ok(UnixListener::from(socket))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn place() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("bailiwick-socket-").tempdir_in("/var/tmp").unwrap()
    }

    #[test]
    fn it_is_ours_alone_and_goes_with_its_owner() {
        let place = place();
        let path = place.path().join("s");
        let socket = ApprovalSocket::listen(&path, &[]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(socket);
        assert!(fs::symlink_metadata(&path).is_err());
    }

    #[test]
    fn what_is_there_stays() {
        let place = place();
        let path = place.path().join("s");
        fs::write(&path, "mine").unwrap();
        assert!(matches!(ApprovalSocket::listen(&path, &[]), Err(SocketError::Exists(_))));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert!(matches!(ApprovalSocket::listen(&path, &[]), Err(SocketError::Exists(_))));
        fs::remove_file(&path).unwrap();
        let socket = ApprovalSocket::listen(&path, &[]).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another").unwrap();
        drop(socket);
        assert_eq!(fs::read(&path).unwrap(), b"another");
    }

    #[test]
    fn a_place_that_others_or_agents_can_change_is_refused() {
        let place = place();
        let open = place.path().join("open");
        fs::create_dir_all(open.join("deep")).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let listen = |path: &Path, agents: &[PathBuf]| ApprovalSocket::listen(path, agents);
        assert!(matches!(listen(&open.join("s"), &[]), Err(SocketError::Open(found)) if found == open));
        assert!(matches!(listen(&open.join("deep/s"), &[]), Err(SocketError::Open(found)) if found == open));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(listen(&open.join("s"), &[]).is_ok(), "as /tmp");
        let agents = [fs::canonicalize(place.path()).unwrap()];
        assert!(matches!(listen(&open.join("s"), &agents), Err(SocketError::Agents(_))));
        assert!(matches!(listen(&place.path().join("missing/s"), &[]), Err(SocketError::Place { .. })));
        let long = place.path().join("x".repeat(120));
        assert!(matches!(listen(&long, &[]), Err(SocketError::Listen { .. })));
    }
}
