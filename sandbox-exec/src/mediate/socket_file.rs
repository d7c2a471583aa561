//! `bind(2)` of a unix socket to a path, which makes a file there.
//!
//! It is performed here, like every `bind` that is mediated: let go on, the call would look its descriptor up once more, which by
//! then can be that of an internet socket, and take a port that nobody judged. What is performed here is judged by the kernel by the
//! program's own rules: on a thread that has entered the program's domain, in the same mounts, as the same user. So it does not
//! matter what the path leads to by then. A domain of a program's own making, inside that one, is not asked.
//!
//! The path goes to the kernel as the program wrote it, since it is what `getsockname(2)` says afterwards.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc::mode_t;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, fchdir};

use super::address::Address;
use super::caller::Caller;
use super::socket;
use super::status::Status;
use super::tree::by_descriptor;
use crate::domain::Domain;
use crate::system;

/// A directory that a path begins from, and the mode bits that new files lack: both are the whole process's, so that one at a
/// time is bound.
static OF_THE_PROCESS: Mutex<()> = Mutex::new(());

/// The path of a socket as a program means it.
#[derive(Debug)]
pub(super) struct SocketFile {
    address: Address,
    /// The directory that a relative path begins at, or that stands in the path as a descriptor.
    directory: Option<OwnedFd>,
    /// The mode bits that the file lacks.
    umask: mode_t,
}

impl SocketFile {
    /// Looks up what of a path is the caller's own: its working directory, its descriptors, its umask. All of it is only if the
    /// call still waits afterwards.
    pub(super) fn of(caller: &Caller<'_>, path: &Path, address: &Address) -> Result<Self, Errno> {
        let address = address.clone();
        let umask = Status::of(caller.thread())?.umask;
        let meant = caller.path(path)?;
        if path.is_absolute() && meant == path {
            return Ok(Self { address, directory: None, umask });
        }
        if path.is_relative() {
            let directory = Some(directory(&caller.path(Path::new("."))?)?);
            return Ok(Self { address, directory, umask });
        }
        // By what the caller calls itself in /proc, which is no word of this process's.
        let (parent, name) = meant.parent().zip(meant.file_name()).ok_or(Errno::EADDRINUSE)?;
        let directory = directory(parent)?;
        let address = Address::of_path(Path::new(&by_descriptor(&directory)).join(name));
        Ok(Self { address, directory: Some(directory), umask })
    }

    /// Binds a socket to it, inside a domain.
    pub(super) fn bind(&self, domain: &Domain, socket: &OwnedFd) -> Result<(), Errno> {
        let _alone = OF_THE_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        thread::scope(|scope| {
            let inside = thread::Builder::new().spawn_scoped(scope, || self.bind_inside(domain, socket));
            inside.map_err(|_| Errno::ENOBUFS)?.join().map_err(|_| Errno::EIO)?
        })
    }

    /// The life of a thread, which ends with this: a domain is for good.
    fn bind_inside(&self, domain: &Domain, socket: &OwnedFd) -> Result<(), Errno> {
        let entered = system::set_no_new_privs().and_then(|()| domain.enter());
        entered.map_err(|_| Errno::EACCES)?;
        if let Some(directory) = &self.directory {
            fchdir(directory)?;
        }
        let ours = umask(Mode::from_bits_truncate(self.umask));
        let bound = socket::bind(socket, &self.address);
        umask(ours);
        // No directory of the program's is kept in use.
        chdir("/").and(bound)
    }
}

fn directory(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
}
