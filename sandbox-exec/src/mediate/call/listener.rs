//! Listener of the mediating seccomp program, and calls that wait for an answer (`seccomp_unotify(2)`).

#![expect(unsafe_code, reason = "the kernel fills in and reads the structures of linux/seccomp.h")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::system;

/// Flag that makes the kernel run the caller at once on this processor when it is answered:
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` (linux/seccomp.h, Linux 6.6).
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// Error number that makes the kernel run the pending signal handler, and then repeat the call or fail it with `EINTR`:
/// `ERESTARTSYS` (linux/errno.h). No program sees the number.
const RESTART: c_int = 512;

/// Flag by which the kernel performs the call: `SECCOMP_USER_NOTIF_FLAG_CONTINUE` (linux/seccomp.h, Linux 5.5).
const GO_ON: u32 = 1;

/// First Linux in which `SECCOMP_IOCTL_NOTIF_RECV` returns once no process is left that could make a call.
const ENDS: (u32, u32) = (6, 11);

#[derive(Debug)]
pub(in crate::mediate) struct Listener {
    descriptor: OwnedFd,
    ends: bool,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::mediate) struct Notification {
    pub(in crate::mediate) id: u64,
    /// Thread id of the caller in this process's pid namespace.
    pub(in crate::mediate) thread: libc::pid_t,
    pub(in crate::mediate) call: libc::c_long,
    pub(in crate::mediate) arguments: [u64; 6],
}

#[derive(Debug)]
pub(in crate::mediate) enum NotificationAnswer {
    Value(i64),
    Failed(Errno),
    /// Lets the kernel perform the call. The kernel reads the arguments again; this answer must not depend on them.
    GoesOn,
    Given,
    /// Runs the pending signal handler; then the call is repeated, or fails with `EINTR`.
    Restart,
    Descriptor {
        descriptor: OwnedFd,
        close_on_exec: bool,
    },
}

impl Listener {
    pub(in crate::mediate) fn new(descriptor: OwnedFd) -> Self {
        // SAFETY: passes an integer. A kernel that does not know the flag is only slower.
        unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        Self { descriptor, ends: system::release().is_some_and(|release| release >= ENDS) }
    }

    /// Waits for the next call; `None` once no process is left that could make one.
    pub(in crate::mediate) fn receive(&self) -> io::Result<Option<Notification>> {
        // If receiving waits as well, polling first is a wasted system call.
        let mut waited = self.ends;
        loop {
            if !waited && !self.wait()? {
                return Ok(None);
            }
            match self.take() {
                // The caller was killed, a signal came in between, or there are no more callers.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                    waited = false;
                }
                received => return received.map(Some),
            }
        }
    }

    fn wait(&self) -> io::Result<bool> {
        loop {
            let mut polled = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => {
                    let events = polled[0].revents().unwrap_or(PollFlags::empty());
                    return Ok(events.contains(PollFlags::POLLIN));
                }
            }
        }
    }

    fn take(&self) -> io::Result<Notification> {
        // SAFETY: a structure of integers; the kernel wants it zeroed.
        let mut received: libc::seccomp_notif = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes one `seccomp_notif`, whose size is part of the request.
        let answer = unsafe {
            libc::ioctl(self.descriptor.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut received)
        };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Notification {
            id: received.id,
            thread: received.pid.cast_signed(),
            call: received.data.nr.into(),
            arguments: received.data.args,
        })
    }

    /// True if the call still waits. Its thread number, and files opened by that, are then the caller's.
    pub(in crate::mediate) fn waits(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one integer.
        unsafe {
            libc::ioctl(self.descriptor.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0
        }
    }

    pub(in crate::mediate) fn answer(&self, id: u64, answer: NotificationAnswer) {
        match answer {
            NotificationAnswer::Value(value) => self.send(id, value, 0),
            NotificationAnswer::Failed(errno) => self.send(id, 0, -(errno as c_int)),
            NotificationAnswer::Given => {}
            NotificationAnswer::GoesOn => self.respond(id, 0, 0, GO_ON),
            NotificationAnswer::Restart => self.send(id, 0, -RESTART),
            NotificationAnswer::Descriptor { descriptor, close_on_exec } => {
                if let Err(errno) = self.add(id, &descriptor, close_on_exec) {
                    self.send(id, 0, -(errno as c_int));
                }
            }
        }
    }

    fn send(&self, id: u64, value: i64, error: c_int) {
        self.respond(id, value, error, 0);
    }

    fn respond(&self, id: u64, value: i64, error: c_int, flags: u32) {
        let response = libc::seccomp_notif_resp { id, val: value, error, flags };
        // SAFETY: the kernel reads one `seccomp_notif_resp`.
        unsafe {
            libc::ioctl(self.descriptor.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response);
        }
    }

    /// Adds a descriptor to the caller's table, and answers the call with the number, since Linux 5.14 in one step.
    pub(in crate::mediate) fn add(
        &self,
        id: u64,
        descriptor: &OwnedFd,
        close_on_exec: bool,
    ) -> Result<c_int, Errno> {
        #[expect(clippy::cast_possible_truncation, reason = "it is 2")]
        let at_once = libc::SECCOMP_ADDFD_FLAG_SEND as u32;
        match self.add_with(id, descriptor, close_on_exec, at_once) {
            Err(Errno::EINVAL) => {
                let number = self.add_with(id, descriptor, close_on_exec, 0)?;
                self.send(id, number.into(), 0);
                Ok(number)
            }
            added => added,
        }
    }

    fn add_with(
        &self,
        id: u64,
        descriptor: &OwnedFd,
        close_on_exec: bool,
        flags: u32,
    ) -> Result<c_int, Errno> {
        let newfd_flags = if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
        let srcfd = descriptor.as_raw_fd().cast_unsigned();
        let request = libc::seccomp_notif_addfd { id, flags, srcfd, newfd: 0, newfd_flags };
        // SAFETY: the kernel reads one `seccomp_notif_addfd`.
        let number = unsafe {
            libc::ioctl(self.descriptor.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const request)
        };
        Errno::result(number)
    }
}
