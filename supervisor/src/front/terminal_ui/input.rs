//! The keyboard of the terminal, read without blocking.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use boundary::system::register;
use nix::errno::Errno;
use nix::unistd::read;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::keys::{KeyRest, Keys, TypedKey};

/// Time within which the rest of a sequence must follow an escape byte. Otherwise the byte is the Escape key.
const ESCAPE: Duration = Duration::from_millis(50);

/// The same time as [`ESCAPE`], if the keys come over a network.
const REMOTE_ESCAPE: Duration = Duration::from_millis(100);

/// Longest wait for the rest of an incomplete key. Until then the rest is not read as text.
const REST: Duration = Duration::from_millis(1_500);

/// Environment variables that are set if the keys come over a network.
const REMOTE: [&str; 2] = ["SSH_CONNECTION", "SSH_TTY"];

/// Time after a query to the terminal in which an escape byte may begin the answer.
const ANSWER: Duration = Duration::from_millis(500);

/// Longest wait at the end of the UI for the answer to a query. A later answer becomes input of the shell.
const LAST_ANSWER: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct TerminalInput {
    terminal: AsyncFd<OwnedFd>,
    keys: Keys,
    typed: VecDeque<TypedKey>,
    burst: bool,
    /// Longest time that an escape byte waits for the next byte.
    escape: Duration,
    /// Time at which an incomplete key counts as complete, or is dropped; `None` if no key is incomplete.
    patience: Option<Instant>,
    /// Time of the last query to the terminal; `None` if no answer can arrive any more.
    asked: Option<Instant>,
}

impl TerminalInput {
    /// Creates a reader on a duplicate of the terminal's descriptor, after [`Tty::engage`](super::tty::Tty::engage) has
    /// made reads non-blocking. Must be called within the runtime.
    pub(super) fn new(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        let terminal = terminal.try_clone_to_owned()?;
        let terminal = register(terminal, Interest::READABLE)?;
        let (keys, typed) = (Keys::default(), VecDeque::new());
        let is_remote = REMOTE.iter().any(|name| std::env::var_os(name).is_some());
        let escape = if is_remote { REMOTE_ESCAPE } else { ESCAPE };
        Ok(Self { terminal, keys, typed, burst: false, escape, patience: None, asked: None })
    }

    /// Records that a query was sent to the terminal, so that the answer is not read as keys.
    pub(super) fn expect_answer(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// Reads and drops the answer to a query, if one may still arrive.
    pub(super) async fn take_last_answer(&mut self) {
        while let Some(left) = self.asked.and_then(|at| LAST_ANSWER.checked_sub(at.elapsed())) {
            if !matches!(tokio::time::timeout(left, self.next()).await, Ok(Ok(_))) {
                return;
            }
        }
    }

    /// True if the last key was read together with others, as in fast typing or a paste that the terminal did not mark.
    pub(super) const fn is_burst(&self) -> bool {
        self.burst
    }

    /// Returns the keys that were typed until now. Does not wait.
    pub(super) fn waiting(&mut self) -> Vec<TypedKey> {
        let mut buffer = [0; 4 << 10];
        while let Ok(length @ 1..) = read(self.terminal.get_ref().as_fd(), &mut buffer) {
            self.accept(&buffer[..length]);
        }
        self.typed.drain(..).collect()
    }

    /// Returns the next key or paste. Cancel safe. Fails if the terminal is closed.
    pub(super) async fn next(&mut self) -> io::Result<TypedKey> {
        loop {
            if let Some(typed) = self.typed.pop_front() {
                return Ok(typed);
            }
            let mut buffer = [0; 4 << 10];
            tokio::select! {
                biased;
                length = read_some(&self.terminal, &mut buffer) => self.accept(&buffer[..length?]),
                () = until(self.patience) => {
                    self.typed.extend(self.keys.give_up_waiting());
                    self.burst = self.typed.len() > 1;
                    self.patience = None;
                }
            }
        }
    }

    fn accept(&mut self, bytes: &[u8]) {
        for typed in self.keys.take(bytes) {
            if typed == TypedKey::Attributes {
                self.asked = None;
            } else {
                self.typed.push_back(typed);
            }
        }
        self.burst = self.typed.len() > 1;
        let asked = self.asked.is_some_and(|asked| asked.elapsed() < ANSWER);
        let patience = self.keys.waits_for().map(|rest| match rest {
            KeyRest::OfEscape if asked => ANSWER,
            KeyRest::OfEscape => self.escape,
            KeyRest::OfSequence => REST,
        });
        self.patience = patience.map(|patience| Instant::now() + patience);
    }
}

async fn read_some(terminal: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut guard = terminal.readable().await?;
        match read(terminal.get_ref().as_fd(), &mut *buffer) {
            Ok(0) if guard.ready().is_read_closed() => return Err(io::ErrorKind::UnexpectedEof.into()),
            // Another program that reads the same terminal took the keys.
            Ok(0) | Err(Errno::EAGAIN | Errno::EINTR) => guard.clear_ready(),
            result => return Ok(result?),
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
