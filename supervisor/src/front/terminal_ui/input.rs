//! The user's keyboard, read without ever waiting in a system call.

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

/// How long an escape byte may be the beginning of a longer sequence: the rest of one comes with it, but over slow lines.
const ESCAPE: Duration = Duration::from_millis(50);

/// The same where the keys come over a network.
const REMOTE_ESCAPE: Duration = Duration::from_millis(100);

/// The longest wait for the rest of a part of a key: half of it would be taken for the user's words.
const REST: Duration = Duration::from_millis(1_500);

/// Variables that say that the keys come over a network.
const REMOTE: [&str; 2] = ["SSH_CONNECTION", "SSH_TTY"];

/// The longest time that it may be the beginning of the terminal's answer to a question.
const ANSWER: Duration = Duration::from_millis(500);

/// The longest time that an answer holds up the end of the UI: the shell would take it for what was typed.
const LAST_ANSWER: Duration = Duration::from_millis(50);

/// What the user types.
#[derive(Debug)]
pub(super) struct TerminalInput {
    terminal: AsyncFd<OwnedFd>,
    keys: Keys,
    typed: VecDeque<TypedKey>,
    /// Whether what was read last was more than one key.
    burst: bool,
    /// The longest that an escape byte waits for the next one.
    escape: Duration,
    /// When what is cut is taken for whole, or dropped.
    patience: Option<Instant>,
    /// When the terminal was asked something, while the answer may still come.
    asked: Option<Instant>,
}

impl TerminalInput {
    /// For a duplicate of the descriptor of a terminal whose reads do not wait ([`Tty::engage`](super::tty::Tty::engage)). Must
    /// be called within the runtime.
    pub(super) fn new(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        let terminal = terminal.try_clone_to_owned()?;
        let terminal = register(terminal, Interest::READABLE)?;
        let (keys, typed) = (Keys::default(), VecDeque::new());
        let is_remote = REMOTE.iter().any(|name| std::env::var_os(name).is_some());
        let escape = if is_remote { REMOTE_ESCAPE } else { ESCAPE };
        Ok(Self { terminal, keys, typed, burst: false, escape, patience: None, asked: None })
    }

    /// The terminal has been asked something: its answer is no key.
    pub(super) fn expect_answer(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// Reads the answer that may still be on its way, and nothing else matters any more.
    pub(super) async fn take_last_answer(&mut self) {
        while let Some(left) = self.asked.and_then(|at| LAST_ANSWER.checked_sub(at.elapsed())) {
            if !matches!(tokio::time::timeout(left, self.next()).await, Ok(Ok(_))) {
                return;
            }
        }
    }

    /// Whether what was given last came with more: a paste, where the terminal does not say so, or what was typed while we
    /// were too slow to read.
    pub(super) const fn is_burst(&self) -> bool {
        self.burst
    }

    /// What was typed by now, without waiting.
    pub(super) fn waiting(&mut self) -> Vec<TypedKey> {
        let mut buffer = [0; 4 << 10];
        while let Ok(length @ 1..) = read(self.terminal.get_ref().as_fd(), &mut buffer) {
            self.accept(&buffer[..length]);
        }
        self.typed.drain(..).collect()
    }

    /// The next key or paste. Cancel safe. An error means that the terminal is gone.
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
            // No key: another program that has the terminal too was faster.
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
