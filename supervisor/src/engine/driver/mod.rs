//! A session and its agent runs, which connect the pure agent with streams, workers, timers and the log.
//!
//! Decisions of an agent's core are carried out in order: an event logged before a dispatch is written to the log file
//! before the worker gets the call, and an approved effect begins once the log is synced to the disk.

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
mod snapshots;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// One turn, after which the run ends.
    One,
    /// Any number of turns, until the user ends the run.
    Many,
}

/// Error that ends a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("cannot write the session log: {0}")]
    Log(#[from] LogError),
    /// The snapshot of the project failed, so that no patch can be written.
    #[error(transparent)]
    Changes(#[from] ObserverError),
    /// Files that programs outside the sandbox run later cannot be protected.
    #[error("cannot protect files (such as git hooks) that programs outside the sandbox run later: {0}")]
    Tripwire(#[source] io::Error),
    #[error("bailiwick has a bug and cannot continue: {0}")]
    Panicked(String),
    /// The core ended without reporting a result.
    #[error("the agent stopped without a result")]
    NoEnd,
}

impl SessionError {
    /// Returns the error as text, marked with its stable error code if it has one.
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
