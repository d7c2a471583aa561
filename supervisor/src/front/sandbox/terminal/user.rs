//! The user's own terminal: raw while a command has the keyboard, and as it was on every way out.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::termios::{self, FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use nix::unistd::{getpgrp, read, tcgetpgrp};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use boundary::system::register;

/// The keyboard of the user's terminal. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: AsyncFd<OwnedFd>,
    /// What the modes were; absent while they are as they were.
    saved: Option<Termios>,
    /// Present if other programs use this terminal too.
    shared: Option<SharedTerminal>,
}

/// The state of a keyboard that another program may take, and of a screen that it writes to.
#[derive(Debug)]
struct SharedTerminal {
    /// The modes as they were when the keyboard was taken last.
    set: Option<Termios>,
    /// True if the terminal translates line ends, as before.
    translates: bool,
}

impl Keyboard {
    /// Takes a duplicate of a terminal's descriptor; `is_shared` says that other programs may use the terminal as well. Must be
    /// called within the runtime.
    pub(super) fn new(terminal: OwnedFd, is_shared: bool) -> io::Result<Self> {
        let terminal = register(terminal, Interest::READABLE)?;
        let shared = is_shared.then_some(SharedTerminal { set: None, translates: true });
        Ok(Self { terminal, saved: None, shared })
    }

    /// Says whether a shared terminal is to translate line ends; it does from the next [`Keyboard::engage`] on.
    pub(super) fn translate(&mut self, translates: bool) {
        if let Some(shared) = &mut self.shared {
            shared.translates = translates;
        }
    }

    /// Whether another program has taken the keyboard: modes that we did not set are its own.
    fn is_taken(&self, modes: &Termios) -> bool {
        match self.shared.as_ref().map(|shared| &shared.set) {
            Some(Some(set)) => modes != set,
            Some(None) => !modes.local_flags.contains(LocalFlags::ICANON),
            None => false,
        }
    }

    /// Hands every key to us, as long as we are in the foreground: in the background that would stop us (SIGTTOU).
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
        // A read never waits: who else reads the terminal may have been faster. The descriptor is shared with others, and
        // is therefore not made non-blocking.
        raw.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        raw.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        if termios::tcsetattr(self.fd(), SetArg::TCSANOW, &raw).is_err() {
            self.saved = None;
        }
        // As the kernel has them, which is how they are compared.
        let set = self.modes().ok();
        if let Some(shared) = &mut self.shared {
            shared.set = set;
        }
    }

    /// Gives the terminal back as it was, unless another program has it.
    pub(super) fn release(&mut self) {
        let is_taken = self.modes().is_ok_and(|modes| self.is_taken(&modes));
        if let Some(shared) = &mut self.shared {
            shared.set = None;
        }
        if let Some(saved) = self.saved.take().filter(|_| !is_taken) {
            // Where it is gone, so is what was to be restored.
            let _ = termios::tcsetattr(self.fd(), SetArg::TCSANOW, &saved);
        }
    }

    /// Whether other programs may use the terminal as well.
    pub(super) const fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether the keys are ours.
    pub(super) fn is_engaged(&self) -> bool {
        self.saved.is_some()
    }

    /// Drops what was typed and not read.
    pub(super) fn flush(&self) {
        let _ = termios::tcflush(self.fd(), FlushArg::TCIFLUSH);
    }

    /// The modes as they are.
    pub(super) fn modes(&self) -> nix::Result<Termios> {
        termios::tcgetattr(self.fd())
    }

    /// Reads keys, and none while another program has the keyboard. Cancel safe. To be called while engaged.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.terminal.readable().await?;
            if self.is_taken(&self.modes()?) {
                guard.clear_ready();
                continue;
            }
            match read(self.fd(), &mut *buffer) {
                // No key, or no terminal any more: the kernel tells of the latter by SIGHUP.
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
