use std::ffi::OsString;
use std::fs;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::libc::{self, c_int, pid_t};

use super::listener::{Listener, Notification};
use super::memory::Memory;
use crate::mediate::broker_sockets::BrokerSockets;
use crate::mediate::kernel::open_descriptors::{self, HoldingPlace};
use crate::mediate::kernel::status::Status;
use crate::mediate::kernel::text;
use crate::system;
pub(in crate::mediate) use crate::system::pidfd_open;

/// Flag for a pidfd of one thread instead of its process: `PIDFD_THREAD` (linux/pidfd.h, Linux 6.9).
pub(in crate::mediate) const PIDFD_THREAD: c_int = libc::O_EXCL;

/// Thread whose call waits. A file that was opened by the thread's number is really the caller's only if
/// [`Caller::still_waits`] succeeds afterwards.
pub(in crate::mediate) struct Caller<'a> {
    listener: &'a Listener,
    id: u64,
    thread: pid_t,
    /// Sockets that the mediator created; `None` if sockets can be duplicated.
    made: Option<&'a BrokerSockets>,
}

impl<'a> Caller<'a> {
    pub(in crate::mediate) fn of(
        listener: &'a Listener,
        notification: &Notification,
        made: Option<&'a BrokerSockets>,
    ) -> Self {
        Self { listener, id: notification.id, thread: notification.thread, made }
    }

    pub(in crate::mediate) fn id(&self) -> u64 {
        self.id
    }

    pub(in crate::mediate) fn thread(&self) -> pid_t {
        self.thread
    }

    pub(in crate::mediate) fn memory(&self) -> Memory {
        Memory(self.thread)
    }

    pub(in crate::mediate) fn descriptor(&self, number: RawFd) -> Result<OwnedFd, Errno> {
        if let Some(made) = self.made {
            return made.duplicate(self.place(number));
        }
        let opened = match pidfd_open(self.thread, PIDFD_THREAD) {
            // Threads share their descriptors, unless they asked not to. A kernel before 6.9 then looks at
            // the first thread's table, where the call fails or acts on a file of that thread, which belongs
            // to the caller's process too.
            Err(Errno::EINVAL) => pidfd_open(Status::of(self.thread)?.process, 0),
            opened => opened,
        };
        duplicate(&opened?, number)
    }

    /// Returns a duplicate of the socket with this inode and cookie, from any process inside the sandbox that has it.
    pub(in crate::mediate) fn find(&self, inode: u32, cookie: u64) -> Option<OwnedFd> {
        match self.made {
            None => open_descriptors::duplicate(inode, cookie, self.thread),
            Some(made) => made.held(inode, cookie),
        }
    }

    pub(in crate::mediate) fn place(&self, number: RawFd) -> HoldingPlace {
        HoldingPlace { thread: self.thread, number }
    }

    /// Returns the name of the calling process; empty if unknown.
    pub(in crate::mediate) fn program(&self) -> String {
        Status::of(self.thread).map(|status| text::name(status.process)).unwrap_or_default()
    }

    pub(in crate::mediate) fn still_waits(&self) -> Result<(), Errno> {
        if self.listener.waits(self.id) { Ok(()) } else { Err(Errno::ESRCH) }
    }

    /// Translates a path for this process: resolves the caller's working directory and its `/proc/self`.
    pub(in crate::mediate) fn path(&self, path: &Path) -> Result<PathBuf, Errno> {
        let own = PathBuf::from(format!("/proc/{}", self.thread));
        let bytes = path.as_os_str().as_bytes();
        for itself in ["/proc/self/", "/proc/thread-self/"] {
            if let Some(rest) = bytes.strip_prefix(itself.as_bytes()) {
                return Ok(join(&own, rest));
            }
        }
        if path.is_absolute() {
            has_our_root(&own)?;
            return Ok(path.to_owned());
        }
        Ok(join(&own.join("cwd"), bytes))
    }

    pub(in crate::mediate) fn signal(&self, signal: c_int) {
        if let (Ok(status), true) = (Status::of(self.thread), self.listener.waits(self.id)) {
            system::signal_thread(status.process, self.thread, signal);
        }
    }
}

/// Fails if the caller has another root directory than this process. No confined program can change its root.
fn has_our_root(own: &Path) -> Result<(), Errno> {
    static OURS: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    let identity = |path: &Path| fs::metadata(path).ok().map(|root| (root.dev(), root.ino()));
    let ours = *OURS.get_or_init(|| identity(Path::new("/")));
    if ours.is_some() && identity(&own.join("root")) == ours { Ok(()) } else { Err(Errno::EACCES) }
}

/// Appends a path to a directory, also if the path begins with a slash: `Path::join` would drop the directory then.
fn join(directory: &Path, rest: &[u8]) -> PathBuf {
    let mut path = OsString::from(directory);
    path.push("/");
    path.push(std::ffi::OsStr::from_bytes(rest));
    path.into()
}

/// Duplicates a descriptor of a process (`pidfd_getfd(2)`, Linux 5.6).
pub(in crate::mediate) fn duplicate(process: &OwnedFd, number: RawFd) -> Result<OwnedFd, Errno> {
    match system::pidfd_getfd(process, number) {
        // The table of this process is full, not the caller's.
        Err(Errno::EMFILE | Errno::ENFILE) => Err(Errno::ENOBUFS),
        descriptor => descriptor,
    }
}

#[cfg(test)]
pub(in crate::mediate) mod tests {
    use std::fs::File;

    use super::*;

    pub(in crate::mediate) fn with_own_calls<T>(act: impl FnOnce(&Caller<'_>) -> T) -> T {
        let listener = Listener::new(File::open("/dev/null").unwrap().into());
        let thread = nix::unistd::gettid().as_raw();
        let notification = Notification { id: 0, thread, call: 0, arguments: [0; 6] };
        act(&Caller::of(&listener, &notification, None))
    }
}
