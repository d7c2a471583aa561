//! `bind(2)` of a unix socket to a path, which creates a file there.
//!
//! It is performed here, like every `bind` that is mediated: if the kernel continued the call, it would look
//! up the descriptor once more, which by then can be that of an internet socket, and take a port that was
//! never judged. The kernel judges the performed call by the program's own rules: it runs on a thread that
//! has entered the program's domain, in the same mounts, as the same user. So it does not matter if the path
//! leads elsewhere by then. A domain of a program's own making, inside that one, is not asked.
//!
//! The path goes to the kernel as the program wrote it, since `getsockname(2)` returns it afterwards.

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

use super::address::Address;
use super::caller::Caller;
use super::status::Status;
use super::tree::by_descriptor;
use super::{metadata, socket};
use crate::domain::Domain;
use crate::system;

/// Serializes calls that change the working directory and the umask, since both belong to the whole process.
static OF_THE_PROCESS: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub(super) struct SocketFile {
    address: Address,
    /// Directory that a relative path starts at, or that the address names by a descriptor.
    directory: Option<OwnedFd>,
    /// Mode bits that the file lacks.
    umask: mode_t,
}

impl SocketFile {
    /// Looks up the parts of a path that belong to the caller: its working directory, its descriptors, its
    /// umask. They are the caller's only if the call still waits afterwards.
    pub(super) fn of(caller: &Caller<'_>, path: &Path, address: &Address) -> Result<Self, Errno> {
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

    /// Binds a socket to the path, inside a domain.
    pub(super) fn bind(&self, domain: &Domain, socket: &OwnedFd) -> Result<(), Errno> {
        let _alone = OF_THE_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        thread::scope(|scope| {
            let inside = thread::Builder::new().spawn_scoped(scope, || self.bind_inside(domain, socket));
            inside.map_err(|_| Errno::ENOBUFS)?.join().map_err(|_| Errno::EIO)?
        })
    }

    /// Main function of a thread that ends afterwards: a domain is entered for good.
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

/// Splits a path into its directory, and its last name with trailing slashes.
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
