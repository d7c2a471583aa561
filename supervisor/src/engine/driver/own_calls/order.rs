//! Results of our own calls, for the agent's run to carry out.

use agent::core::ContextItem;
use ipc::message::Work;
use protocol::frontend::UiEventKind;

use super::origin::OwnCall;

/// An order of [`super::OwnCalls`].
pub(in crate::engine::driver) enum OwnOrder {
    /// Sends a call to the agent's worker.
    Send(OwnCall, Work),
    Cancel(OwnCall),
    Show(UiEventKind),
    /// Tells people something about the project's instructions.
    Remark(String),
    /// Replaces the worker by another one with the same access: it does not answer.
    ReplaceWorker,
    /// Tells the agent of its place: nothing of it is looked for any more.
    Begin(ProjectWords),
}

/// Words of the project to an agent, as far as they were found.
#[derive(Debug, Default)]
pub(in crate::engine::driver) struct ProjectWords {
    /// For the model.
    pub items: Vec<ContextItem>,
    /// A line for people about each file that was not read, or not all of it.
    pub remarks: Vec<String>,
}
