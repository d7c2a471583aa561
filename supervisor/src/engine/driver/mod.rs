//! A session and its agent runs: the only place where the pure agent meets streams, workers, timers and the log.
//!
//! A [`Session`] owns what exists once ([`Shared`]: the log, the change set, the tripwire) and the [`AgentRun`]s, each of which
//! owns what is its agent's alone. What an agent's core decides is carried out in order: what it logs before a dispatch is
//! handed to the kernel before the worker hears of it, and an approved effect begins when its log is on the disk.

mod account;
mod actions;
mod approvals;
mod boundary;
mod budget;
mod calls;
mod changes;
mod digest;
mod event_sink;
mod flushes;
mod guests;
mod looks;
mod model_stream;
mod models;
mod modes;
mod observer;
mod one_shot;
mod one_shots;
mod own_calls;
mod passing;
mod prepare;
mod rewinder;
mod run;
mod session;
mod shared;
mod sources;
mod started;
#[cfg(test)]
mod tests;
mod timers;
mod tree_order;
mod tripwire;
mod worker;
mod write_turns;
mod written_files;

use std::any::Any;
use std::io;
use std::time::Duration;

use protocol::error_code::ErrorCode;

use crate::journal::session::LogError;

pub(crate) use boundary::read_down;
pub use boundary::{Boundary, PageOrder, Processes, StartedWorker, WorkerControl, WorkerOrder};
pub use calls::{Caller, ServedAnswer, ToolServer};
pub use changes::ChangeTracker;
pub(crate) use digest::{rights_digest, ruleset_digest};
pub use models::Models;
pub use modes::{ModePlaces, WatchedConfinement};
pub use observer::{ObserverError, SnapshotTaker};
pub use one_shot::{Journal, OneShot, OneShotError, Unlogged};
pub use prepare::{PrepareError, prepare};
pub use rewinder::{RewindError, RewindJournal, Rewinder, RewoundFiles};
pub use run::{AgentParts, AgentRun};
pub use session::{NotOpened, OpenedAgent, OpensAgents, Session};
pub use shared::{ApprovalKeeper, PlanRecords, Shared};
pub use tripwire::TripwireWatch;
pub(crate) use tripwire::apart;
pub use worker::{Live, Lives, SessionWorker};

/// Number of turns of an agent run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// One: the run ends with it.
    One,
    /// As many as the user likes: the run ends when the user ends it.
    Many,
}

/// The reason why a session could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The log cannot be written.
    #[error("cannot write the session log: {0}")]
    Log(#[from] LogError),
    /// The project's state cannot be taken, so that there would be no patch.
    #[error(transparent)]
    Changes(#[from] ObserverError),
    /// Files that the host runs later cannot be protected.
    #[error("cannot protect files (such as git hooks) that programs outside the sandbox run later: {0}")]
    Tripwire(#[source] io::Error),
    #[error("bailiwick has a bug and cannot continue: {0}")]
    Panicked(String),
    /// The core ended without saying how.
    #[error("the agent stopped without a result")]
    NoEnd,
}

impl SessionError {
    /// The error in words, with its stable code where it has one.
    pub(crate) fn told(&self) -> String {
        let code = match self {
            Self::Log(error) => error.code(),
            Self::Tripwire(_) => Some(ErrorCode::NoSandbox),
            Self::Changes(_) | Self::Panicked(_) | Self::NoEnd => None,
        };
        let words = self.to_string();
        code.map_or_else(|| words.clone(), |code| code.mark(&words))
    }
}

fn panicked(panic: &(dyn Any + Send)) -> SessionError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    SessionError::Panicked(text.unwrap_or("the cause is unknown").to_owned())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
