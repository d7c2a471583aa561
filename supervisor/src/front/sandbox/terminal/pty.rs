//! A pseudo-terminal (pty(7)): the command's side is its terminal, and ours is what its screen and keyboard are made of.

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
        let theirs = open_peer(&ours)?;
        let ours = register(ours.into(), Interest::READABLE | Interest::WRITABLE)?;
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
    pub(super) fn resize(&self, size: Winsize) {
        set_window_size(&self.ours, size);
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
        session_of(&self.ours)
    }
}
