//! A pseudo-terminal for `bailiwick sandbox`. The command never gets the person's own terminal.
//!
//! A process with a terminal's descriptor can read its keys and print text that looks like ours. So the command gets a
//! pseudo-terminal in place of each standard stream that is a terminal. This module passes keys to it and output from
//! it through a [`filter`]. Files and pipes are passed on by [`super::streams`].
//!
//! | stdin | stdout | the command's keyboard |
//! | --- | --- | --- |
//! | terminal | terminal or file | the user's, every key; ^C, ^D and job control work in the sandbox |
//! | terminal | pipe | the same, unless the program that reads the pipe (a pager) takes the keyboard first ([`sharing`]) |
//! | no terminal | any | none: ^C interrupts us, and we end the command |
//!
//! ^Z stops the command and us together if the command is in the foreground of its terminal and does not handle
//! SIGTSTP. A shell in the sandbox stops its own jobs.

mod filter;
mod pty;
mod screen;
mod sharing;
mod user;

use std::fs::File;
use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, fchown};
use std::sync::Arc;
use std::time::Duration;

use ipc::confinement::Identity;
use nix::sys::signal::{Signal, killpg};
use nix::sys::termios::{LocalFlags, OutputFlags, SpecialCharacterIndices};
use nix::unistd::Pid;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use self::filter::Filter;
use self::pty::Pty;
use self::screen::Screen;
use self::sharing::{GRACE, Manner, SharingWatch};
use self::user::Keyboard;
use super::streams::{OnTerminal, Tail};
use crate::process::signals::{Changes, SignalChange};
use crate::process::tty::{size, stop_job};

/// Longest wait after the command's end for the terminal's last answer, and for the display of remaining output.
const ANSWER: Duration = Duration::from_millis(300);

/// Maximum time between a ^C and the arrival of SIGINT in this process.
const LATE: Duration = Duration::from_millis(100);

/// A status request and its answer (DSR, ECMA-48 §8.3.35). Terminals answer requests in order.
const STATUS: (&[u8], &[u8]) = (b"\x1b[5n", b"\x1b[0n");

#[derive(Debug)]
pub(super) struct TerminalRelay {
    pty: Arc<Pty>,
    /// The command's side of the pseudo-terminal. Without a descriptor that is open here, this side would look closed.
    theirs: OwnedFd,
    keyboard: Option<Keyboard>,
    window: OwnedFd,
    output: JoinHandle<ShownOutput>,
    /// Typed keys that the command's terminal has not had room for.
    typed: Vec<u8>,
    /// The process that leads the session of the command's terminal.
    leader: Option<Pid>,
    changes: Option<Changes>,
    /// Time until which another program may take the keyboard; `None` if that time is over.
    grace: Option<Instant>,
    /// Time until which the signal of an earlier ^C may still arrive.
    late_interrupts: Option<Instant>,
    /// Receives changes of the command's terminal modes; `None` unless other programs use the person's terminal too.
    manners: Option<mpsc::Receiver<sharing::TerminalChange>>,
}

#[derive(Debug)]
struct ShownOutput {
    tail: Tail,
    filter: Filter,
    screen: Screen,
}

impl TerminalRelay {
    /// Opens a pseudo-terminal for `owner`; no relay if no standard stream is a terminal. Needs the runtime.
    pub(super) fn prepare(owner: Option<Identity>) -> io::Result<(OnTerminal, Option<Self>)> {
        let terminals = [stdin().is_terminal(), stdout().is_terminal(), stderr().is_terminal()];
        let [first, second, third] = terminals;
        if terminals == [false; 3] {
            return Ok((OnTerminal::default(), None));
        }
        let (pty, theirs) = Pty::open()?;
        if let Some(Identity { uid, gid }) = owner {
            // The command reopens the terminal as /dev/tty and changes its modes, so it must own the terminal.
            fchown(&theirs, Some(uid), Some(gid))?;
        }
        let own = |is_on_it: bool| is_on_it.then(|| theirs.try_clone()).transpose();
        let streams = OnTerminal { stdin: own(first)?, stdout: own(second)?, stderr: own(third)? };
        let window = match terminals {
            [_, true, _] => stdout().as_fd().try_clone_to_owned(),
            [_, _, true] => stderr().as_fd().try_clone_to_owned(),
            _ => stdin().as_fd().try_clone_to_owned(),
        }?;
        let is_shared = !second && is_pipe(&stdout().as_fd().try_clone_to_owned()?)?;
        let keyboard = || Keyboard::new(stdin().as_fd().try_clone_to_owned()?, is_shared);
        let keyboard = first.then(keyboard).transpose()?;
        Ok((streams, Some(Self::new(pty, theirs, keyboard, window)?)))
    }

    fn new(pty: Pty, theirs: OwnedFd, keyboard: Option<Keyboard>, window: OwnedFd) -> io::Result<Self> {
        let modes = keyboard.as_ref().map_or_else(|| nix::sys::termios::tcgetattr(&window), Keyboard::modes);
        if let Ok(mut modes) = modes {
            if keyboard.is_none() {
                // The person's terminal does this processing itself.
                modes.output_flags.remove(OutputFlags::OPOST);
                modes.local_flags.remove(LocalFlags::ECHO);
            }
            pty.set_modes(&modes)?;
        }
        let is_shared = keyboard.as_ref().is_some_and(Keyboard::is_shared);
        let (watch, manners) = is_shared.then(|| SharingWatch::new(&pty)).transpose()?.unzip();
        let pty = Arc::new(pty);
        let output = tokio::spawn(show(Arc::clone(&pty), Screen::start(window.try_clone()?)?, watch));
        let (typed, leader, changes, late_interrupts) = (Vec::new(), None, None, None);
        let grace = is_shared.then(|| Instant::now() + GRACE);
        let relay = Self {
            pty,
            theirs,
            keyboard,
            window,
            output,
            typed,
            leader,
            changes,
            grace,
            late_interrupts,
            manners,
        };
        relay.resize();
        Ok(relay)
    }

    /// Takes the keyboard. Signals that end this process must have handlers, so that the terminal's modes are restored.
    pub(super) fn engage(&mut self) -> io::Result<()> {
        self.changes = Some(Changes::new()?);
        self.take_keyboard();
        Ok(())
    }

    /// Takes the keyboard if this process is in the foreground, and if the time for other programs to take it is over.
    fn take_keyboard(&mut self) {
        if let Some(keyboard) = self.keyboard.as_mut().filter(|_| self.grace.is_none()) {
            keyboard.engage();
        }
        self.resize();
    }

    /// Ends the time in which other programs may take the keyboard.
    fn end_grace(&mut self) {
        if self.grace.take().is_some() {
            self.late_interrupts = Some(Instant::now() + LATE);
        }
    }

    /// Applies a change of the command's terminal modes. A raw mode shows that the command wants the keyboard now.
    fn follow(&mut self, Manner { is_plain, translates }: Manner) {
        if !is_plain {
            self.end_grace();
        }
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.translate(translates);
        }
        self.take_keyboard();
    }

    /// True if a ^C of the person's terminal reaches the broker directly, because nobody has taken the keyboard.
    pub(super) fn leaves_interrupts(&self) -> bool {
        self.grace.is_some() || self.late_interrupts.is_some_and(|end| Instant::now() < end)
    }

    fn resize(&self) {
        if let Some(size) = size(self.window.as_fd()) {
            self.pty.resize(size);
        }
    }

    /// Records the process that leads the command's session.
    pub(super) fn started(&mut self, program: u32) {
        self.leader = i32::try_from(program).ok().map(Pid::from_raw);
        self.grace = self.grace.map(|_| Instant::now() + GRACE);
    }

    /// Handles keys, or a change of the person's terminal. Cancel safe.
    pub(super) async fn attend(&mut self) {
        let Self { pty, keyboard, typed, changes, grace, manners, .. } = self;
        tokio::select! {
            () = end_of(*grace) => {
                self.end_grace();
                self.take_keyboard();
            }
            Some((manner, done)) = next_manner(manners.as_mut()) => {
                self.follow(manner);
                // The receiver may have been dropped.
                let _ = done.send(());
            }
            keys = next_keys(pty, keyboard.as_ref(), typed) => match keys {
                TerminalKeys::Typed(keys) => self.take(&keys),
                TerminalKeys::Passed(passed) => drop(typed.drain(..passed)),
                TerminalKeys::Gone => self.keyboard = None,
            },
            change = next_change(changes.as_mut()) => match change {
                SignalChange::Size => self.resize(),
                SignalChange::Suspended => self.suspend(),
                SignalChange::Continued => self.take_keyboard(),
            },
        }
    }

    fn take(&mut self, keys: &[u8]) {
        let suspends = self.suspending_key().and_then(|key| keys.iter().position(|byte| *byte == key));
        let Some(at) = suspends else {
            return self.typed.extend_from_slice(keys);
        };
        self.typed.extend_from_slice(&keys[..at]);
        self.typed.extend_from_slice(&keys[at + 1..]);
        self.suspend();
    }

    /// Returns the suspend key (VSUSP) if this process has to suspend the command itself: the kernel does not stop an
    /// orphaned process group by a key (POSIX, "Orphaned Process Group"). `None` otherwise.
    fn suspending_key(&self) -> Option<u8> {
        let modes = self.pty.modes().ok()?;
        let key = modes.control_chars[SpecialCharacterIndices::VSUSP as usize];
        let leader = self.leader?;
        let alone = self.group()? == leader && leaves_stopping_to_us(leader);
        (key != 0 && modes.local_flags.contains(LocalFlags::ISIG) && alone).then_some(key)
    }

    fn group(&self) -> Option<Pid> {
        if self.pty.session() == self.leader { self.pty.foreground() } else { None }
    }

    fn suspend(&mut self) {
        let group = self.group();
        let signal = |signal| group.map(|group| killpg(group, signal));
        signal(Signal::SIGSTOP);
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.release();
        }
        // If this process cannot be stopped, the command continues too.
        let _ = stop_job();
        self.take_keyboard();
        signal(Signal::SIGCONT);
    }

    pub(super) async fn finish(mut self) -> Tail {
        drop(self.theirs);
        drop(self.manners);
        let Ok(mut shown) = self.output.await else { return Tail::default() };
        let keyboard = self.keyboard.as_ref().filter(|keyboard| keyboard.is_engaged());
        if let (Some(keyboard), true) = (keyboard, shown.filter.asked()) {
            swallow_answers(keyboard, &shown.screen).await;
        }
        shown.screen.show(shown.filter.undo()).await;
        let mut rest = std::pin::pin!(shown.screen.finish());
        // The remaining output is shown before the terminal is restored. ^C works only after that.
        let shown_in_time = timeout(ANSWER, &mut rest).await.is_ok();
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.release();
        }
        if !shown_in_time {
            rest.await;
        }
        shown.tail
    }
}

enum TerminalKeys {
    Typed(Vec<u8>),
    Passed(usize),
    Gone,
}

async fn next_keys(pty: &Pty, keyboard: Option<&Keyboard>, typed: &[u8]) -> TerminalKeys {
    if !typed.is_empty() {
        // Keys that cannot be written are dropped.
        return TerminalKeys::Passed(pty.write(typed).await.unwrap_or(typed.len()));
    }
    let mut keys = vec![0; 4 << 10];
    let read = match keyboard.filter(|keyboard| keyboard.is_engaged()) {
        Some(keyboard) => keyboard.read(&mut keys).await,
        None => std::future::pending().await,
    };
    match read {
        Ok(read) => {
            keys.truncate(read);
            TerminalKeys::Typed(keys)
        }
        Err(_) => TerminalKeys::Gone,
    }
}

async fn end_of(grace: Option<Instant>) {
    match grace {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

async fn next_manner(
    manners: Option<&mut mpsc::Receiver<sharing::TerminalChange>>,
) -> Option<sharing::TerminalChange> {
    match manners {
        Some(manners) => manners.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_change(changes: Option<&mut Changes>) -> SignalChange {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

async fn show(pty: Arc<Pty>, screen: Screen, mut watch: Option<SharingWatch>) -> ShownOutput {
    let mut shown = ShownOutput { tail: Tail::default(), filter: Filter::default(), screen };
    let mut buffer = [0; 8 << 10];
    while let Ok(read) = pty.read(&mut buffer).await {
        shown.tail.remember(&buffer[..read]);
        let mut piece = shown.filter.pass(&buffer[..read]);
        if let Some(watch) = &mut watch {
            watch.look(&pty).await;
            piece = watch.without_returns(piece);
        }
        shown.screen.show(piece).await;
    }
    shown
}

/// Drops all answers that the terminal still sends, up to the answer to a last status request. Typed keys are lost too.
async fn swallow_answers(keyboard: &Keyboard, screen: &Screen) {
    let (request, answer) = STATUS;
    screen.show(request.to_vec()).await;
    let answered = async {
        let mut seen = vec![];
        let mut keys = [0; 1 << 10];
        while let Ok(read) = keyboard.read(&mut keys).await {
            seen.extend_from_slice(&keys[..read]);
            if seen.windows(answer.len()).any(|window| window == answer) {
                break;
            }
        }
    };
    // Some terminals do not answer.
    let _ = timeout(ANSWER, answered).await;
    keyboard.flush();
}

/// True if the process has not changed the default action of SIGTSTP, as the masks in `/proc/PID/status` show
/// (`proc_pid_status(5)`).
fn leaves_stopping_to_us(process: Pid) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/status")) else { return false };
    let bit = 1u64 << (Signal::SIGTSTP as u32 - 1);
    ["SigIgn:", "SigCgt:"].iter().all(|name| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & bit == 0)
    })
}

fn is_pipe(stream: &OwnedFd) -> io::Result<bool> {
    let kind = File::from(stream.try_clone()?).metadata()?.file_type();
    Ok(kind.is_fifo() || kind.is_socket())
}
