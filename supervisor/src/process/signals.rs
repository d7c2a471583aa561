//! The signals that end us, or that we answer to; from the making of these on, none has its default effect.
//!
//! A hang-up that was ignored at the start stays ignored, as under nohup(1): whoever started us wants us to outlive the terminal. The
//! terminal UI is the exception, since it is nothing without one.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal;
use nix::unistd::{Pid, getppid};
use protocol::frontend::{AgentAction, UserActionKind};
use tokio::signal::unix::{Signal, SignalKind, signal};

use boundary::system::is_ignored;

/// Has the kernel end this process by SIGTERM when its parent ends; an error if the parent has ended already.
pub(crate) fn end_with(parent: i32) -> io::Result<()> {
    set_pdeathsig(signal::Signal::SIGTERM)?;
    // A parent that ended before the call sends no signal any more (PR_SET_PDEATHSIG(2const)).
    if getppid() == Pid::from_raw(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the process that began this run has ended"))
    }
}

/// Signals that end a process which does not handle them, and that somebody sends to it: signal(7), the action *Term*, and *Core* as
/// far as a person or a limit causes it. Not the faults of the process itself, and not SIGKILL.
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

/// Signals that would end the process, and that report a failed write here: the error of the write reports it
/// too.
const WITHOUT_EFFECT: &[i32] = &[libc::SIGPIPE, libc::SIGXFSZ];

/// The signals of [`ENDING`], and those for real-time use.
fn ending() -> impl Iterator<Item = i32> {
    ENDING.iter().copied().chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// SIGHUP, unless it is ignored.
fn hangup() -> impl Iterator<Item = i32> {
    (!is_ignored(signal::Signal::SIGHUP)).then_some(libc::SIGHUP).into_iter()
}

/// Several signals with one meaning.
#[derive(Debug)]
struct AnyOf(Vec<(i32, Signal)>);

impl AnyOf {
    fn new(numbers: impl Iterator<Item = i32>) -> io::Result<Self> {
        for number in WITHOUT_EFFECT {
            // A handler that nobody asks takes the default action away.
            drop(signal(SignalKind::from_raw(*number))?);
        }
        numbers
            .map(|number| Ok((number, signal(SignalKind::from_raw(number))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Waits for one; its number. Cancel safe.
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

/// The signals by which a user acts on a session without a terminal UI. What comes before somebody waits for it is kept.
#[derive(Debug)]
pub(crate) struct UserSignals {
    interrupt: Signal,
    hangup: AnyOf,
    ending: AnyOf,
}

impl UserSignals {
    /// Handles them from now on. Must be called within the runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, hangup: AnyOf::new(hangup())?, ending: AnyOf::new(ending())? })
    }

    /// Waits for one; SIGINT interrupts, and every other one ends the session. Cancel safe.
    pub(crate) async fn next(&mut self) -> UserActionKind {
        tokio::select! {
            _ = self.interrupt.recv() => UserActionKind::Agent(AgentAction::Interrupt),
            _ = self.hangup.next() => UserActionKind::Agent(AgentAction::HangUp),
            _ = self.ending.next() => UserActionKind::Agent(AgentAction::Terminate),
        }
    }
}

/// Every signal that ends us.
#[derive(Debug)]
pub(crate) struct Endings(AnyOf);

impl Endings {
    /// Handles them from now on. Must be called within the runtime.
    pub(crate) fn new() -> io::Result<Self> {
        AnyOf::new(hangup().chain([libc::SIGINT]).chain(ending())).map(Self)
    }

    /// The signals for a program on a terminal: a hang-up ends it even if it was ignored.
    pub(crate) fn on_a_terminal() -> io::Result<Self> {
        AnyOf::new([libc::SIGINT, libc::SIGHUP].into_iter().chain(ending())).map(Self)
    }

    /// The number of one that has come by now.
    pub(crate) async fn so_far(&mut self) -> Option<i32> {
        // The runtime looks for them when there is nothing else to do.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            signal = self.next() => Some(signal),
            () = std::future::ready(()) => None,
        }
    }

    /// Waits for one; its number. Cancel safe.
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

/// Signal of a terminal or its shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalChange {
    Size,
    /// The process stops.
    Suspended,
    /// We were stopped, and are not any more.
    Continued,
}

impl Changes {
    /// Handles them from now on. Must be called within the runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            size: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            resume: signal(SignalKind::from_raw(libc::SIGCONT))?,
        })
    }

    /// Waits for one. Cancel safe.
    pub(crate) async fn next(&mut self) -> SignalChange {
        tokio::select! {
            _ = self.size.recv() => SignalChange::Size,
            _ = self.stop.recv() => SignalChange::Suspended,
            _ = self.resume.recv() => SignalChange::Continued,
        }
    }
}
