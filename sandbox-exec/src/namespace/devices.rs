//! New `/dev` of a program in the full tier. It has the host's harmless devices and granted devices, and its own
//! terminals and shared memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::symlinkat;

use super::mount::{self, Attributes, Reach};
use super::tree::{Mounted, TreeError, at};
use crate::compile::DEVICES;
use crate::terminal;

/// Path of the device that opens the controlling terminal of the calling process.
const TTY: &str = "/dev/tty";

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

#[derive(Debug)]
pub(super) struct Nodes(Vec<(PathBuf, OwnedFd)>);

impl Nodes {
    /// Copies the mounts of the host's devices; also `/dev/tty` if the program has a terminal.
    pub(super) fn copied(terminal: bool) -> Result<Self, TreeError> {
        let mut nodes = Self(vec![]);
        for device in DEVICES.into_iter().chain([TTY]).map(Path::new) {
            nodes.add(device, device)?;
        }
        // The terminal belongs to the host's devpts, which will be hidden: without a name, ttyname(3) fails.
        // The console's name is the one that ttyname looks at and that programs expect to vary.
        if let Some(name) = terminal.then(terminal::name).flatten() {
            nodes.add(&name, Path::new(terminal::OWN_NAME))?;
        }
        Ok(nodes)
    }

    fn add(&mut self, device: &Path, place: &Path) -> Result<(), TreeError> {
        let node = match mount::open(device) {
            Ok(node) => node,
            // A container may lack some devices.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(at("open", device)(source)),
        };
        let copy = mount::copy(node.as_fd(), Reach::Mount).map_err(at("copy the mount of", device))?;
        self.0.push((place.to_owned(), copy));
        Ok(())
    }

    /// Attaches the copied devices to the new `/dev`, which must be mounted already.
    pub(super) fn attach(self, dev: BorrowedFd<'_>) -> Result<(), TreeError> {
        for (path, node) in self.0 {
            let name = path.strip_prefix("/dev").unwrap_or(&path);
            let attached = file(dev, name).and_then(|place| {
                mount::restrict(node.as_fd(), Attributes::DEVICES, Reach::Mount)?;
                mount::attach(node.as_fd(), place.as_fd())
            });
            attached.map_err(at("put in place", &path))?;
        }
        Ok(())
    }
}

pub(super) fn furnish(dev: BorrowedFd<'_>) -> io::Result<()> {
    for directory in ["pts", "shm", "mqueue"] {
        mkdirat(dev, directory, Mode::from_bits_truncate(0o755))?;
    }
    for (name, target) in LINKS {
        symlinkat(target, dev, name)?;
    }
    Ok(())
}

/// Attaches a granted path below `/dev`, such as `/dev/dri`, or the host's `/dev/shm`.
pub(super) fn grant(dev: BorrowedFd<'_>, granted: &Mounted) -> Result<(), TreeError> {
    let name = granted.path.strip_prefix("/dev").unwrap_or(&granted.path);
    let place = super::own_tmp::place(dev, name, granted.directory);
    place
        .and_then(|place| mount::attach(granted.mount.as_fd(), place.as_fd()))
        .map_err(at("put in place", &granted.path))
}

fn file(directory: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    drop(openat(directory, name, flags, Mode::from_bits_truncate(0o666))?);
    mount::open_in(directory, name)
}
