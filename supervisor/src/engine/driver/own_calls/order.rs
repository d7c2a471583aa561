//! Orders of the supervisor's own calls to the agent's run.

use agent::core::ContextItem;
use ipc::message::Work;
use protocol::frontend::UiEventKind;

use super::origin::OwnCall;

/// An order of [`super::OwnCalls`] to the agent's run.
pub(in crate::engine::driver) enum OwnOrder {
    Send(OwnCall, Work),
    Cancel(OwnCall),
    Show(UiEventKind),
    Remark(String),
    /// Replaces a worker that does not answer by one with the same access.
    ReplaceWorker,
    /// Gives the agent its environment and instructions, once the search for instructions is over.
    Begin(ProjectWords),
}

#[derive(Debug, Default)]
pub(in crate::engine::driver) struct ProjectWords {
    /// Instructions for the model.
    pub items: Vec<ContextItem>,
    pub remarks: Vec<String>,
}
