//! The person's terminal: raw while a command has the keyboard, and restored however the command ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::termios::{self, FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use nix::unistd::{getpgrp, read, tcgetpgrp};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use boundary::system::register;

#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: AsyncFd<OwnedFd>,
    saved: Option<Termios>,
    /// State of a shared terminal; `None` if no other program, such as a pager, uses it.
    shared: Option<SharedTerminal>,
}

/// The state of a terminal that other programs use too.
#[derive(Debug)]
struct SharedTerminal {
    set: Option<Termios>,
    /// True if line feeds of the output also return to the left edge.
    translates: bool,
}

impl Keyboard {
    /// Registers the terminal. `is_shared` is true if other programs may use it too. Must be called within the runtime.
    pub(super) fn new(terminal: OwnedFd, is_shared: bool) -> io::Result<Self> {
        let terminal = register(terminal, Interest::READABLE)?;
        let shared = is_shared.then_some(SharedTerminal { set: None, translates: true });
        Ok(Self { terminal, saved: None, shared })
    }

    /// Sets whether the terminal translates line ends. The setting takes effect at the next [`Keyboard::engage`].
    pub(super) fn translate(&mut self, translates: bool) {
        if let Some(shared) = &mut self.shared {
            shared.translates = translates;
        }
    }

    /// True if the terminal has modes that this process did not set, because another program has taken the keyboard.
    fn is_taken(&self, modes: &Termios) -> bool {
        match self.shared.as_ref().map(|shared| &shared.set) {
            Some(Some(set)) => modes != set,
            Some(None) => !modes.local_flags.contains(LocalFlags::ICANON),
            None => false,
        }
    }

    /// Makes the terminal raw, if this process is in the foreground. A background process would be stopped by SIGTTOU.
    pub(super) fn engage(&mut self) {
        if tcgetpgrp(self.fd()) != Ok(getpgrp()) {
            return;
        }
        let Ok(modes) = self.modes() else { return };
        if self.is_taken(&modes) {
            return;
        }
        let before = self.saved.get_or_insert(modes).clone();
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        if self.shared.as_ref().is_some_and(|shared| shared.translates) {
            raw.output_flags = before.output_flags;
        }
        // Reads do not wait, because another reader may take the keys. The descriptor is shared, so it stays blocking.
        raw.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        raw.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        if termios::tcsetattr(self.fd(), SetArg::TCSANOW, &raw).is_err() {
            self.saved = None;
        }
        // The modes as the kernel has stored them, for a later comparison.
        let set = self.modes().ok();
        if let Some(shared) = &mut self.shared {
            shared.set = set;
        }
    }

    /// Restores the terminal, unless another program has taken it.
    pub(super) fn release(&mut self) {
        let is_taken = self.modes().is_ok_and(|modes| self.is_taken(&modes));
        if let Some(shared) = &mut self.shared {
            shared.set = None;
        }
        if let Some(saved) = self.saved.take().filter(|_| !is_taken) {
            // A closed terminal needs no restoration.
            let _ = termios::tcsetattr(self.fd(), SetArg::TCSANOW, &saved);
        }
    }

    pub(super) const fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    pub(super) fn is_engaged(&self) -> bool {
        self.saved.is_some()
    }

    pub(super) fn flush(&self) {
        let _ = termios::tcflush(self.fd(), FlushArg::TCIFLUSH);
    }

    pub(super) fn modes(&self) -> nix::Result<Termios> {
        termios::tcgetattr(self.fd())
    }

    /// Reads keys, but none while another program has the keyboard. Cancel safe. Call only while engaged.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.terminal.readable().await?;
            if self.is_taken(&self.modes()?) {
                guard.clear_ready();
                continue;
            }
            match read(self.fd(), &mut *buffer) {
                // There is no key, or the terminal is closed. SIGHUP reports the latter.
                Ok(0) | Err(Errno::EAGAIN | Errno::EINTR) => guard.clear_ready(),
                result => return Ok(result?),
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.terminal.get_ref().as_fd()
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.release();
    }
}
