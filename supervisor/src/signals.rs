//! The signals that sessions and `bailiwick sandbox` answer to; from the making of these on, none has its default effect.

use std::io;

use ipc::frontend::UserActionKind;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal;
use nix::unistd::{Pid, getppid};
use tokio::signal::unix::{Signal, SignalKind, signal};

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

/// The signals by which a user acts on a session without a terminal UI. What comes before somebody waits for it is kept.
#[derive(Debug)]
pub(crate) struct UserSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl UserSignals {
    /// Handles them from now on. Must be called within the runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one; SIGINT interrupts, SIGTERM and SIGHUP end the session. Cancel safe.
    pub(crate) async fn next(&mut self) -> UserActionKind {
        tokio::select! {
            _ = self.interrupt.recv() => UserActionKind::Interrupt,
            _ = self.terminate.recv() => UserActionKind::Terminate,
            _ = self.hangup.recv() => UserActionKind::HangUp,
        }
    }
}

/// Every signal that ends us.
#[derive(Debug)]
pub(crate) struct Endings {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Endings {
    /// Handles them from now on. Must be called within the runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// The number of one that has come by now.
    pub(super) async fn so_far(&mut self) -> Option<i32> {
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
        tokio::select! {
            _ = self.interrupt.recv() => libc::SIGINT,
            _ = self.terminate.recv() => libc::SIGTERM,
            _ = self.hangup.recv() => libc::SIGHUP,
            _ = self.quit.recv() => libc::SIGQUIT,
        }
    }
}

/// What a terminal and its shell tell by signals.
#[derive(Debug)]
pub(crate) struct Changes {
    size: Signal,
    stop: Signal,
    resume: Signal,
}

/// One of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalChange {
    /// The window has another size.
    Size,
    /// We are to stop.
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
