//! `bind(2)` of a unix socket to a path, which creates a file.
//!
//! If the call were left to the kernel, the descriptor could be an internet socket by then, and get a port that nobody
//! judged. So the mediator performs the call on a thread that is in the program's Landlock domain, with the same mounts
//! and the same user. The kernel then judges by the program's rules, wherever the path leads. Domains that the program
//! has entered itself do not count.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc::mode_t;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, fchdir};

use crate::domain::Domain;
use crate::mediate::call::address::Address;
use crate::mediate::call::caller::Caller;
use crate::mediate::call::socket;
use crate::mediate::files::metadata;
use crate::mediate::files::tree::by_descriptor;
use crate::mediate::kernel::status::Status;
use crate::system;

static OF_THE_PROCESS: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub(in crate::mediate) struct SocketFile {
    address: Address,
    directory: Option<OwnedFd>,
    umask: mode_t,
}

impl SocketFile {
    /// Prepares a bind. What it has read is valid only if the call still waits afterwards.
    pub(in crate::mediate) fn of(caller: &Caller<'_>, path: &Path, address: &Address) -> Result<Self, Errno> {
        let umask = Status::of(caller.thread())?.umask;
        let start = if path.is_absolute() {
            caller.path(Path::new("/"))?;
            None
        } else {
            Some(directory(&caller.path(Path::new("."))?)?)
        };
        let (parent, name) = split(path.as_os_str().as_bytes());
        let parent = CString::new(parent).map_err(|_| Errno::EINVAL)?;
        // By a link in /proc that stands for an open file of the caller's.
        let Some(directory) = metadata::led_elsewhere(caller.thread(), start.as_ref(), &parent)? else {
            return Ok(Self { address: address.clone(), directory: start, umask });
        };
        let address = Address::of_path(Path::new(&by_descriptor(&directory)).join(OsStr::from_bytes(name)));
        Ok(Self { address, directory: Some(directory), umask })
    }

    pub(in crate::mediate) fn bind(&self, domain: &Domain, socket: &OwnedFd) -> Result<(), Errno> {
        let _alone = OF_THE_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        thread::scope(|scope| {
            let inside = thread::Builder::new().spawn_scoped(scope, || self.bind_inside(domain, socket));
            inside.map_err(|_| Errno::ENOBUFS)?.join().map_err(|_| Errno::EIO)?
        })
    }

    /// Binds the socket in the Landlock domain. Must run on a thread that ends then, since a domain cannot be left.
    fn bind_inside(&self, domain: &Domain, socket: &OwnedFd) -> Result<(), Errno> {
        let entered = system::set_no_new_privs().and_then(|()| domain.enter());
        entered.map_err(|_| Errno::EACCES)?;
        if let Some(directory) = &self.directory {
            fchdir(directory)?;
        }
        let ours = umask(Mode::from_bits_truncate(self.umask));
        let bound = socket::bind(socket, &self.address);
        umask(ours);
        // Releases the program's directory.
        chdir("/").and(bound)
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    match path[..end].iter().rposition(|&byte| byte == b'/') {
        Some(at) => path.split_at(at + 1),
        None => (b".", path),
    }
}

fn directory(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
}
