//! A user's terminal that the command shares with the programs that read its standard output: `bailiwick sandbox -- CMD | less`.
//!
//! Two programs cannot read one keyboard. A pager takes it at its start, by modes of its own; a plain filter never does. So the
//! command gets the keyboard as soon as it changes the modes of its own terminal, or when nobody else took it within
//! [`GRACE`]. A plain filter writes to the user's terminal itself, which therefore goes on to translate line ends unless the
//! command's terminal does not.
//!
//! Limits: keys that are typed within the grace are echoed twice. A program that takes the keyboard later restores our modes at
//! its end, and so leaves a raw terminal if it outlives the command.

use std::mem;
use std::time::Duration;

use nix::sys::termios::{LocalFlags, OutputFlags, Termios};
use tokio::sync::{mpsc, oneshot};

use super::pty::Pty;

/// The time that a program on the other end of the pipe has to take the keyboard. Pagers do so in their first milliseconds.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// The output flags by which a terminal begins a line at its left edge.
const TRANSLATES: OutputFlags = OutputFlags::OPOST.union(OutputFlags::ONLCR);

/// The modes of the command's terminal that the user's has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// True if the terminal collects lines and echoes keys, as for a program that does not care.
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

/// Another manner, and the sender that says when the user's terminal follows it.
pub(super) type TerminalChange = (Manner, oneshot::Sender<()>);

/// Watches the command's terminal while its output is shown.
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

    /// Lets the user's terminal follow before what was written in another manner is shown.
    pub(super) async fn look(&mut self, pty: &Pty) {
        let Ok(modes) = pty.modes() else { return };
        let now = Manner::of(&modes);
        if mem::replace(&mut self.last, now) == now {
            return;
        }
        let (done, followed) = oneshot::channel();
        // Nobody follows any more once the command has ended.
        if self.changes.send((now, done)).await.is_ok() {
            let _ = followed.await;
        }
    }

    /// Leaves the return before a line feed to the user's terminal, where that adds one.
    pub(super) fn without_returns(&self, mut piece: Vec<u8>) -> Vec<u8> {
        if self.last.translates {
            let mut next = piece.clone().into_iter().skip(1).chain([0]);
            piece.retain(|byte| (*byte, next.next()) != (b'\r', Some(b'\n')));
        }
        piece
    }
}
