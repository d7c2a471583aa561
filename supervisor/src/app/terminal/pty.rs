//! A pseudo-terminal (pty(7)): the command's side is its terminal, and ours is what its screen and keyboard are made of.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::pty::Winsize;
use nix::sys::termios::{self, SetArg, Termios};
use nix::unistd::{Pid, read, tcgetpgrp, write};
use tokio::io::unix::AsyncFd;

/// A pseudo-terminal, as long as it is ours.
#[derive(Debug)]
pub(super) struct Pty {
    ours: AsyncFd<OwnedFd>,
}

impl Pty {
    /// Makes one; the second is the command's side. Must be called within the runtime.
    pub(super) fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK;
        let ours = File::options().read(true).write(true).custom_flags(flags.bits()).open("/dev/ptmx")?;
        let unlocked: libc::c_int = 0;
        // SAFETY: TIOCSPTLCK reads one integer (ioctl_tty(2)).
        Errno::result(unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) })?;
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        // SAFETY: TIOCGPTPEER takes open(2) flags and returns a new descriptor; no name is looked up (Linux 4.13).
        let theirs =
            Errno::result(unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, flags.bits()) })?;
        // SAFETY: the kernel just gave us this descriptor.
        let theirs = unsafe { OwnedFd::from_raw_fd(theirs) };
        // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives.
        let ours = unsafe { AsyncFd::register(OwnedFd::from(ours)) }?;
        Ok((Self { ours }, theirs))
    }

    /// Reads what the command wrote. Cancel safe. The end is an error, `EIO`: nobody has the command's side open.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.ours.readable().await?;
            if let Ok(result) = guard.try_io(|ours| Ok(read(ours, &mut *buffer)?)) {
                return result;
            }
        }
    }

    /// Types: as much as there is room for. Cancel safe.
    pub(super) async fn write(&self, keys: &[u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.ours.writable().await?;
            if let Ok(result) = guard.try_io(|ours| Ok(write(ours, keys)?)) {
                return result;
            }
        }
    }

    /// Sets the window's size; the kernel tells the foreground processes.
    pub(super) fn resize(&self, size: &Winsize) {
        // SAFETY: TIOCSWINSZ reads one `winsize`. It cannot fail on a terminal that is open.
        unsafe { libc::ioctl(self.ours.as_raw_fd(), libc::TIOCSWINSZ, &raw const *size) };
    }

    /// The modes that the command has set.
    pub(super) fn modes(&self) -> nix::Result<Termios> {
        termios::tcgetattr(&self.ours)
    }

    /// Sets the modes.
    pub(super) fn set_modes(&self, modes: &Termios) -> nix::Result<()> {
        termios::tcsetattr(&self.ours, SetArg::TCSANOW, modes)
    }

    /// The process group that reads keys and is interrupted.
    pub(super) fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.ours).ok().filter(|group| group.as_raw() > 0)
    }

    /// The session whose controlling terminal it is.
    pub(super) fn session(&self) -> Option<Pid> {
        let mut session: libc::pid_t = 0;
        // SAFETY: TIOCGSID writes one `pid_t`.
        let result = unsafe { libc::ioctl(self.ours.as_raw_fd(), libc::TIOCGSID, &raw mut session) };
        (result == 0 && session > 0).then(|| Pid::from_raw(session))
    }
}

/// The size of a terminal's window.
pub(in crate::app) fn size(terminal: BorrowedFd<'_>) -> Option<Winsize> {
    let mut size = MaybeUninit::<Winsize>::uninit();
    let number: RawFd = terminal.as_fd().as_raw_fd();
    // SAFETY: TIOCGWINSZ writes one `winsize`, or fails.
    let result = unsafe { libc::ioctl(number, libc::TIOCGWINSZ, size.as_mut_ptr()) };
    // SAFETY: it did not fail.
    (result == 0).then(|| unsafe { size.assume_init() })
}
