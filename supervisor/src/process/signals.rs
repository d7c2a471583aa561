//! Handles signals that end the process or are about its terminal. A handler turns its signal's default action off.
//!
//! A SIGHUP that was ignored at the start stays ignored, as under nohup(1), so that the process can outlive its
//! terminal. The terminal UI handles it anyway, because it cannot work without a terminal.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal;
use nix::unistd::{Pid, getppid};
use protocol::frontend::{AgentAction, UserActionKind};
use tokio::signal::unix::{Signal, SignalKind, signal};

use boundary::system::is_ignored;

/// Makes the kernel send SIGTERM to this process when its parent ends. Fails if the parent has ended already.
pub(crate) fn end_with(parent: i32) -> io::Result<()> {
    set_pdeathsig(signal::Signal::SIGTERM)?;
    // A parent that ended before the call causes no signal (PR_SET_PDEATHSIG(2const)).
    if getppid() == Pid::from_raw(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the process that started this run has ended"))
    }
}

/// Signals that end the process by default (signal(7)): those with the action *Term* that another process may send, and
/// those with the action *Core* that a person or a limit causes.
const ENDING: &[i32] = &[
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGXCPU,
];

/// Signals about failed writes. They get a handler without effect, because the write also fails with an error.
const WITHOUT_EFFECT: &[i32] = &[libc::SIGPIPE, libc::SIGXFSZ];

/// Returns the signals of [`ENDING`] and the real-time signals.
fn ending() -> impl Iterator<Item = i32> {
    ENDING.iter().copied().chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// Returns SIGHUP; nothing if the process ignores it.
fn hangup() -> impl Iterator<Item = i32> {
    (!is_ignored(signal::Signal::SIGHUP)).then_some(libc::SIGHUP).into_iter()
}

/// A set of signals that are handled in the same way.
#[derive(Debug)]
struct AnyOf(Vec<(i32, Signal)>);

impl AnyOf {
    fn new(numbers: impl Iterator<Item = i32>) -> io::Result<Self> {
        for number in WITHOUT_EFFECT {
            // A handler turns the default action off, even if nobody waits for the signal.
            drop(signal(SignalKind::from_raw(*number))?);
        }
        numbers
            .map(|number| Ok((number, signal(SignalKind::from_raw(number))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Waits for a signal and returns its number. Cancel safe.
    async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            let come = |(number, signal): &mut (i32, Signal)| {
                signal.poll_recv(context).is_ready().then_some(*number)
            };
            self.0.iter_mut().find_map(come).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// The signals with which a person controls a session without a terminal UI. Signals are kept until they are waited
/// for.
#[derive(Debug)]
pub(crate) struct UserSignals {
    interrupt: Signal,
    hangup: AnyOf,
    ending: AnyOf,
}

impl UserSignals {
    pub(crate) fn new() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, hangup: AnyOf::new(hangup())?, ending: AnyOf::new(ending())? })
    }

    /// Waits for a signal. SIGINT interrupts the turn, and every other signal ends the session. Cancel safe.
    pub(crate) async fn next(&mut self) -> UserActionKind {
        tokio::select! {
            _ = self.interrupt.recv() => UserActionKind::Agent(AgentAction::Interrupt),
            _ = self.hangup.next() => UserActionKind::Agent(AgentAction::HangUp),
            _ = self.ending.next() => UserActionKind::Agent(AgentAction::Terminate),
        }
    }
}

/// All signals that end the process.
#[derive(Debug)]
pub(crate) struct Endings(AnyOf);

impl Endings {
    pub(crate) fn new() -> io::Result<Self> {
        AnyOf::new(hangup().chain([libc::SIGINT]).chain(ending())).map(Self)
    }

    /// Handles the signals for a program that needs a terminal. SIGHUP ends such a program even if ignored at the
    /// start.
    pub(crate) fn on_a_terminal() -> io::Result<Self> {
        AnyOf::new([libc::SIGINT, libc::SIGHUP].into_iter().chain(ending())).map(Self)
    }

    /// Returns the number of a signal that has already arrived; `None` if there is none.
    pub(crate) async fn so_far(&mut self) -> Option<i32> {
        // The runtime checks for signals when it has nothing else to do.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            signal = self.next() => Some(signal),
            () = std::future::ready(()) => None,
        }
    }

    /// Waits for a signal and returns its number. Cancel safe.
    pub(crate) async fn next(&mut self) -> i32 {
        self.0.next().await
    }
}

#[derive(Debug)]
pub(crate) struct Changes {
    size: Signal,
    stop: Signal,
    resume: Signal,
}

/// A signal about the terminal, sent by the terminal or the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalChange {
    Size,
    /// The process was asked to stop.
    Suspended,
    /// The process was stopped and has continued.
    Continued,
}

impl Changes {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            size: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            resume: signal(SignalKind::from_raw(libc::SIGCONT))?,
        })
    }

    /// Waits for a signal. Cancel safe.
    pub(crate) async fn next(&mut self) -> SignalChange {
        tokio::select! {
            _ = self.size.recv() => SignalChange::Size,
            _ = self.stop.recv() => SignalChange::Suspended,
            _ = self.resume.recv() => SignalChange::Continued,
        }
    }
}
