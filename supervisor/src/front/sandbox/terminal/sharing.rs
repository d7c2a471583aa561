//! The person's terminal, shared by the command and the readers of its output: `bailiwick sandbox -- CMD | less`.
//!
//! Two programs cannot read one keyboard. A pager takes it at its start by changing the terminal's modes, and a plain
//! filter such as `grep` never does. So the command gets the keyboard when it changes the modes of its own terminal, or
//! when no other program took it within [`GRACE`]. A plain filter writes to the person's terminal itself, so line ends
//! stay translated there unless the command's terminal does not translate them.
//!
//! Limits: keys that are typed within that time are echoed twice. A program that takes the keyboard later restores our
//! modes at its end, and leaves a raw terminal if it outlives the command.

use std::mem;
use std::time::Duration;

use nix::sys::termios::{LocalFlags, OutputFlags, Termios};
use tokio::sync::{mpsc, oneshot};

use super::pty::Pty;

/// Time in which the program at the other end of the pipe can take the keyboard. Pagers need a few milliseconds.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// Output flags that make a line feed also return to the left edge.
const TRANSLATES: OutputFlags = OutputFlags::OPOST.union(OutputFlags::ONLCR);

/// Modes of the command's terminal that the person's terminal must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// True if the terminal collects lines and echoes keys, as it does by default.
    pub(super) is_plain: bool,
    /// True if a line feed also returns to the left edge.
    pub(super) translates: bool,
}

impl Manner {
    fn of(modes: &Termios) -> Self {
        Self {
            is_plain: modes.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO),
            translates: modes.output_flags.contains(TRANSLATES),
        }
    }
}

/// New modes, and a channel on which the receiver confirms that the person's terminal follows them.
pub(super) type TerminalChange = (Manner, oneshot::Sender<()>);

#[derive(Debug)]
pub(super) struct SharingWatch {
    last: Manner,
    changes: mpsc::Sender<TerminalChange>,
}

impl SharingWatch {
    pub(super) fn new(pty: &Pty) -> nix::Result<(Self, mpsc::Receiver<TerminalChange>)> {
        let (changes, inbox) = mpsc::channel(1);
        Ok((Self { last: Manner::of(&pty.modes()?), changes }, inbox))
    }

    /// Reports changed modes of the command's terminal, and waits until the person's terminal follows.
    pub(super) async fn look(&mut self, pty: &Pty) {
        let Ok(modes) = pty.modes() else { return };
        let now = Manner::of(&modes);
        if mem::replace(&mut self.last, now) == now {
            return;
        }
        let (done, followed) = oneshot::channel();
        // After the command's end nobody follows the modes.
        if self.changes.send((now, done)).await.is_ok() {
            let _ = followed.await;
        }
    }

    /// Removes the carriage returns of line ends if the person's terminal adds them.
    pub(super) fn without_returns(&self, mut piece: Vec<u8>) -> Vec<u8> {
        if self.last.translates {
            let mut next = piece.clone().into_iter().skip(1).chain([0]);
            piece.retain(|byte| (*byte, next.next()) != (b'\r', Some(b'\n')));
        }
        piece
    }
}
