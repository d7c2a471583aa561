//! A pseudo-terminal (pty(7)). The command has one side as its terminal, and this process has the other.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::pty::Winsize;
use nix::sys::termios::{self, SetArg, Termios};
use nix::unistd::{Pid, read, tcgetpgrp, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use boundary::system::{open_peer, register, session_of, set_window_size};

#[derive(Debug)]
pub(super) struct Pty {
    ours: AsyncFd<OwnedFd>,
}

impl Pty {
    /// Opens a pseudo-terminal. Returns this process's side and the command's side. Must be called within the runtime.
    pub(super) fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK;
        let ours = File::options().read(true).write(true).custom_flags(flags.bits()).open("/dev/ptmx")?;
        let theirs = open_peer(&ours)?;
        let ours = register(ours.into(), Interest::READABLE | Interest::WRITABLE)?;
        Ok((Self { ours }, theirs))
    }

    /// Reads output of the command. Cancel safe. `EIO` means that nobody has the command's side open.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.ours.readable().await?;
            if let Ok(result) = guard.try_io(|ours| Ok(read(ours, &mut *buffer)?)) {
                return result;
            }
        }
    }

    /// Writes as many keys as the kernel's buffer takes, and returns their number. Cancel safe.
    pub(super) async fn write(&self, keys: &[u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.ours.writable().await?;
            if let Ok(result) = guard.try_io(|ours| Ok(write(ours, keys)?)) {
                return result;
            }
        }
    }

    /// Sets the window size. The kernel sends SIGWINCH to the foreground processes.
    pub(super) fn resize(&self, size: Winsize) {
        set_window_size(&self.ours, size);
    }

    pub(super) fn modes(&self) -> nix::Result<Termios> {
        termios::tcgetattr(&self.ours)
    }

    pub(super) fn set_modes(&self, modes: &Termios) -> nix::Result<()> {
        termios::tcsetattr(&self.ours, SetArg::TCSANOW, modes)
    }

    pub(super) fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.ours).ok().filter(|group| group.as_raw() > 0)
    }

    pub(super) fn session(&self) -> Option<Pid> {
        session_of(&self.ours)
    }
}
