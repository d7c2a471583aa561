//! Steps of a start that some machines deny in a user namespace. They come first, so that a machine on which the full
//! tier cannot work is recognized early.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ipc::confinement::{FullTierRefusal, FullTierStep};
use nix::errno::Errno;
use nix::libc;

use super::masks;
use super::mount::{self, Attributes};
use super::network::Networks;
use crate::hosts::Entrances;
use crate::stage::{Failure, Stage};

#[derive(Debug)]
pub(crate) struct FileSystems {
    pub(super) proc: OwnedFd,
    pub(super) dev: OwnedFd,
    pub(super) pts: OwnedFd,
    pub(super) shm: OwnedFd,
    pub(super) mqueue: Option<OwnedFd>,
    pub(super) masks: OwnedFd,
}

/// Step that this machine denied, so that the full tier cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} ({})", reason(.source))]
pub(crate) struct Refusal {
    step: FullTierStep,
    act: &'static str,
    source: io::Error,
}

impl Refusal {
    pub(crate) fn new(act: &'static str, source: impl Into<io::Error>) -> Self {
        Self { step: FullTierStep::Other, act, source: source.into() }
    }

    pub(crate) fn failure(&self) -> Failure {
        let refusal = FullTierRefusal { step: self.step, errno: self.source.raw_os_error() };
        Failure { refusal: Some(refusal), ..Stage::Namespaces.failed(self) }
    }
}

/// Returns the name of an error, such as `EPERM`; the error's message if it has no errno.
fn reason(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |number| format!("{:?}", Errno::from_raw(number)))
}

/// Makes the mounts private, creates the new file systems, and sets up the networks. `ports` are the hosts' ports;
/// `None` without hosts. Fails at the first step that this machine denies.
pub(crate) fn prepare(
    networks: Option<Networks>,
    ports: Option<&BTreeSet<u16>>,
    windows: &[PathBuf],
) -> Result<(FileSystems, Option<Entrances>), Refusal> {
    let refused = |act| move |source: io::Error| Refusal::new(act, source);
    let root = mount::open(Path::new("/")).map_err(refused("open /"))?;
    mount::make_private(root.as_fd()).map_err(refused("make the mounts private"))?;
    let tmpfs = |act, mode: &'static CStr, attributes| {
        mount::new(c"tmpfs", &[(c"mode", mode)], attributes).map_err(refused(act))
    };
    let pts = [(c"ptmxmode", c"0666"), (c"mode", c"0620")];
    let file_systems = FileSystems {
        proc: mount::new(c"proc", &[], Attributes::DATA)
            .map_err(refused("mount /proc"))
            .map_err(|refusal| Refusal { step: FullTierStep::MountProc, ..refusal })?,
        dev: tmpfs("mount /dev", c"0755", Attributes::DEVICES)?,
        pts: mount::new(c"devpts", &pts, Attributes::DEVICES).map_err(refused("mount /dev/pts"))?,
        shm: tmpfs("mount /dev/shm", c"1777", Attributes::WRITABLE)?,
        mqueue: message_queues().map_err(refused("mount /dev/mqueue"))?,
        masks: tmpfs("mount a tmpfs", c"0755", Attributes::WRITABLE)?,
    };
    let entrances = networks.map(|networks| networks.furnish(ports)).transpose()?.flatten();
    masks::furnish(file_systems.masks.as_fd(), ports.is_some(), windows)
        .map_err(refused("make the masks"))?;
    Ok((file_systems, entrances))
}

/// Creates the file system of message queues. Landlock allows `mq_open` only by a rule for this file system. `None` if
/// the kernel has no message queues (`mq_overview(7)`).
fn message_queues() -> io::Result<Option<OwnedFd>> {
    match mount::new(c"mqueue", &[], Attributes::WRITABLE) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        mounted => mounted.map(Some),
    }
}
