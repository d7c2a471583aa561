//! Orders that follow from the supervisor's own calls, for the agent's run to carry out.

use agent::core::ContextItem;
use ipc::message::Work;
use protocol::frontend::UiEventKind;

use super::origin::OwnCall;

/// An order of [`super::OwnCalls`].
pub(in crate::engine::driver) enum OwnOrder {
    Send(OwnCall, Work),
    Cancel(OwnCall),
    Show(UiEventKind),
    Remark(String),
    /// Replaces the worker, which does not answer, by one with the same access.
    ReplaceWorker,
    /// Gives the agent its environment and instructions, after the search for them has ended.
    Begin(ProjectWords),
}

#[derive(Debug, Default)]
pub(in crate::engine::driver) struct ProjectWords {
    /// Text for the model.
    pub items: Vec<ContextItem>,
    pub remarks: Vec<String>,
}
