//! Opens the sockets and loopback addresses for clients.
//!
//! A client may be root in a container that has the socket's directory, and may have changed anything in it. So no
//! symbolic link in the directory is followed, and nothing but sockets is removed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{Gid, Uid, fchown, geteuid};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::client::{Listen, SocketSettings};

/// Maximum number of connections that wait until the relay accepts them.
const BACKLOG: i32 = 128;

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("cannot use the directory {path}: {source}")]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "cannot use the directory {0}: the directory belongs to another user\n  hint: choose a directory that does not exist yet"
    )]
    Foreign(PathBuf),
    #[error(
        "cannot listen at {0}: the path is not a socket\n  hint: remove the file, or choose another directory"
    )]
    Taken(PathBuf),
    #[error(
        "cannot listen at {0}: another process listens there\n  hint: end that process, or choose another directory"
    )]
    InUse(PathBuf),
    #[error("cannot listen at {path}: {source}")]
    Listen { path: String, source: io::Error },
    #[error(
        "cannot listen at {0}: the address is not a loopback address\n  hint: --listen 127.0.0.1:PORT, or a socket"
    )]
    NotLoopback(std::net::SocketAddr),
}

#[derive(Debug)]
pub(super) enum Listener {
    Socket(UnixListener),
    Loopback(TcpListener),
}

#[derive(Debug)]
pub(super) struct OpenedSocket {
    pub(super) listener: Listener,
    /// The relay's address for the client, in the form of `--base-url`.
    pub(super) base_url: String,
    /// File of the socket; `None` for a port. Dropping it removes the file.
    pub(super) name: Option<SocketName>,
}

#[derive(Debug)]
pub(super) enum Stream {
    Socket(UnixStream),
    Loopback(TcpStream),
}

/// File of a socket. Dropping this value removes the file, and the directory if the relay created it.
#[derive(Debug)]
pub(super) struct SocketName {
    path: PathBuf,
    inode: (u64, u64),
    made: Option<PathBuf>,
}

/// Opens a socket or a port. Must be called within the tokio runtime.
pub(super) fn open(place: &Listen) -> Result<OpenedSocket, PlaceError> {
    match place {
        Listen::Socket(settings) => of_socket(settings),
        Listen::Loopback { address, .. } if !address.ip().is_loopback() => {
            Err(PlaceError::NotLoopback(*address))
        }
        Listen::Loopback { address, .. } => {
            let failed = |source| PlaceError::Listen { path: address.to_string(), source };
            let listener = std::net::TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            let base_url = format!("http://{}", listener.local_addr().map_err(failed)?);
            let listener = Listener::Loopback(TcpListener::from_std(listener).map_err(failed)?);
            Ok(OpenedSocket { listener, base_url, name: None })
        }
    }
}

impl Listener {
    /// Waits for the next connection. Cancel safe: no connection is lost if the future is dropped.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Socket(listener) => listener.accept().await.map(|(stream, _)| Stream::Socket(stream)),
            Self::Loopback(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Loopback(stream))
            }
        }
    }
}

fn of_socket(settings: &SocketSettings) -> Result<OpenedSocket, PlaceError> {
    let SocketSettings { path, mode, owner } = settings;
    let failed = |source| PlaceError::Listen { path: path.display().to_string(), source };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let (directory, made) = directory(parent, *owner)?;
    clear(path)?;
    let listener = bound(path, *mode).map_err(|error| failed(error.into()))?;
    let meta = fs::symlink_metadata(path).map_err(failed)?;
    let name = SocketName {
        path: path.clone(),
        inode: (meta.dev(), meta.ino()),
        made: made.then(|| parent.to_owned()),
    };
    if let Some((uid, gid)) = owner {
        give(path, &name, *uid, *gid).map_err(failed)?;
        let (uid, gid) = (Uid::from_raw(*uid), gid.map(Gid::from_raw));
        fchown(&directory, Some(uid), gid).map_err(|error| failed(error.into()))?;
    }
    if made {
        // Users who may connect may enter the directory. A restrictive umask must not keep the owner out.
        let enter = 0o700 | (*mode & 0o060).min(0o010) | (*mode & 0o006).min(0o001);
        fchmod(&directory, Mode::from_bits_truncate(enter)).map_err(|error| failed(error.into()))?;
    }
    listener.set_nonblocking(true).map_err(failed)?;
    let listener = Listener::Socket(UnixListener::from_std(listener).map_err(failed)?);
    Ok(OpenedSocket { listener, base_url: format!("unix:{}", path.display()), name: Some(name) })
}

/// Opens the directory of a socket, and creates it if it is missing. The `bool` is true if it was created.
fn directory(path: &Path, owner: Option<(u32, Option<u32>)>) -> Result<(File, bool), PlaceError> {
    let failed = |source| PlaceError::Directory { path: path.to_owned(), source };
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        // Directories above stay for later clients. Others may enter them, but not list them.
        DirBuilder::new().recursive(true).mode(0o711).create(above).map_err(failed)?;
    }
    let made = match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed(error)),
    };
    let options = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let opened = File::options().read(true).custom_flags(options).open(path).map_err(failed)?;
    let meta = opened.metadata().map_err(failed)?;
    let own = meta.uid() == geteuid().as_raw() || owner.is_some_and(|(uid, _)| meta.uid() == uid);
    if !own {
        return Err(PlaceError::Foreign(path.to_owned()));
    }
    Ok((opened, made))
}

/// Removes an earlier relay's socket at the path. Fails if a process uses the socket, or if the file is no socket.
fn clear(path: &Path) -> Result<(), PlaceError> {
    let failed = |source| PlaceError::Listen { path: path.display().to_string(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => Err(PlaceError::Taken(path.to_owned())),
        Ok(_) => match StdStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed)
            }
            Ok(_) => Err(PlaceError::InUse(path.to_owned())),
            Err(error) => Err(failed(error)),
        },
    }
}

/// Binds a socket. On Linux, the file that bind(2) creates has the mode of the descriptor (`unix_bind_bsd`) without the
/// bits of the umask. These bits are added afterwards.
fn bound(path: &Path, mode: u32) -> nix::Result<StdListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    fchmod(&socket, Mode::from_bits_truncate(mode & 0o666))?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    widen(path, mode & 0o666)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(StdListener::from(socket))
}

/// Opens a socket's file, but not through a symbolic link that may have replaced the file.
fn held(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

fn widen(path: &Path, mode: u32) -> nix::Result<()> {
    let failed = |error: io::Error| nix::Error::from_raw(error.raw_os_error().unwrap_or(libc::EIO));
    let held = held(path).map_err(failed)?;
    if !held.metadata().map_err(failed)?.file_type().is_socket() {
        return Err(nix::Error::ENOTSOCK);
    }
    let own = format!("/proc/self/fd/{}", held.as_raw_fd());
    fs::set_permissions(own, fs::Permissions::from_mode(mode)).map_err(failed)
}

fn give(path: &Path, name: &SocketName, uid: u32, gid: Option<u32>) -> io::Result<()> {
    let held = held(path)?;
    let meta = held.metadata()?;
    if (meta.dev(), meta.ino()) != name.inode {
        return Err(io::ErrorKind::NotFound.into());
    }
    std::os::unix::fs::chown(format!("/proc/self/fd/{}", held.as_raw_fd()), Some(uid), gid)
}

impl Drop for SocketName {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(directory) = &self.made {
            // A directory with other files stays.
            let _ = fs::remove_dir(directory);
        }
    }
}
