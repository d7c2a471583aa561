//! Calls that change a file's metadata: modes, owners, times, attributes, flags.
//!
//! Landlock has no right for such calls. If no mount prevents them either, they are performed here: arguments are
//! copied once, the path is resolved as the caller means it ([`resolve`]), and the open file is judged and changed. The
//! name that the kernel reports must be in the writable tree, or the file must have no name outside ([`object`]).
//!
//! The acting threads have the caller's user and groups and no capability, so the kernel's permission checks apply as
//! for the caller.
//!
//! A file with a name in the tree and another outside belongs to the tree, as for Landlock. No program inside the
//! sandbox can create such a second name.

mod change;
mod object;
mod request;
mod resolve;
mod walk;

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc::{self, pid_t};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;

use super::tree::ProcessTree;
use crate::mediate::call::listener::{Listener, Notification};
use crate::mediate::call::memory::Memory;
use crate::mediate::refusals::Denied;
use change::Change;
pub(in crate::mediate) use request::{IOCTLS, modes, numbers, questions};
use request::{MetadataArguments, MetadataRequest, Reading};
use resolve::FoundFile;

#[derive(Debug)]
pub(in crate::mediate) struct Metadata {
    memory: libc::dev_t,
}

/// Returns the directory to which a path leads the thread; `None` if it leads this process to the same one.
pub(in crate::mediate) fn led_elsewhere(
    thread: pid_t,
    from: Option<&OwnedFd>,
    path: &CStr,
) -> Result<Option<OwnedFd>, Errno> {
    if resolve::look_up(from, path, true).is_ok() {
        return Ok(None);
    }
    let from = from.map(OwnedFd::try_clone).transpose().map_err(|_| Errno::EMFILE)?;
    walk::follow(Thread(thread), from, path, true).map(|found| Some(found.file))
}

/// Thread id of a caller. A file opened by the id is surely the caller's only if the call still waits afterwards.
#[derive(Clone, Copy, Debug)]
struct Thread(pid_t);

impl Metadata {
    pub(in crate::mediate) fn new() -> Result<Self, Errno> {
        let memory = memfd_create(c"", MFdFlags::MFD_CLOEXEC)?;
        Ok(Self { memory: fstat(&memory)?.st_dev })
    }

    pub(in crate::mediate) fn act(
        &self,
        tree: &ProcessTree,
        listener: &Listener,
        notification: &Notification,
    ) -> Option<Result<(), Denied>> {
        let reading = request::reading(notification)?;
        Some(self.perform(reading, tree, listener, notification))
    }

    /// Answers an `access(2)` call that asks about writing, since Landlock does not answer such questions. Returns true
    /// to deny the access, false to leave the answer to the kernel, and `None` for other calls.
    pub(in crate::mediate) fn denies_writing(
        &self,
        tree: &ProcessTree,
        notification: &Notification,
    ) -> Option<bool> {
        let question = request::question(notification)?;
        let memory = Memory(notification.thread);
        let arguments = MetadataArguments { memory, values: notification.arguments };
        let found = question(&arguments).and_then(|place| resolve::open(Thread(notification.thread), &place));
        let is_denied = |found: FoundFile| {
            let kind = fstat(&found.file)?.st_mode & libc::S_IFMT;
            let is_judged = [libc::S_IFREG, libc::S_IFDIR].contains(&kind);
            Ok(is_judged && self.admit(tree, &found, &Change::Times(None)).is_err())
        };
        Some(found.and_then(is_denied).unwrap_or(false))
    }

    fn perform(
        &self,
        reading: Reading,
        tree: &ProcessTree,
        listener: &Listener,
        notification: &Notification,
    ) -> Result<(), Denied> {
        let memory = Memory(notification.thread);
        let arguments = MetadataArguments { memory, values: notification.arguments };
        let MetadataRequest::Change(place, change) = reading(&arguments)? else {
            return Ok(());
        };
        let found = resolve::open(Thread(notification.thread), &place)?;
        if !listener.waits(notification.id) {
            return Err(Errno::ESRCH.into());
        }
        self.admit(tree, &found, &change)?;
        Ok(change.make(&found.file)?)
    }
}
