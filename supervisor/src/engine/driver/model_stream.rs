//! An agent's request to its model. It waits for a part of the session's budget, or its reply is being received.

use std::sync::Arc;

use agent::core::{Estimate, Input, RequestId};
use futures_util::StreamExt;
use ipc::id::AgentId;
use model::provider::{EventStream, ModelProvider, ModelRequest};

use super::budget::{Admission, SessionBudget};

pub(super) struct ModelStream {
    provider: Arc<dyn ModelProvider>,
    /// Request that waits for a part of the session's budget, with the request's estimated cost.
    unfunded: Option<(RequestId, ModelRequest, Estimate)>,
    open: Option<(RequestId, EventStream)>,
}

impl ModelStream {
    pub(super) const fn new(provider: Arc<dyn ModelProvider>) -> Self {
        Self { provider, unfunded: None, open: None }
    }

    /// Stores a request. [`Self::fund`] sends it.
    pub(super) fn ask(&mut self, request: RequestId, model: ModelRequest, estimate: Estimate) {
        self.unfunded = Some((request, model, estimate));
    }

    /// Sends the stored request if the budget allows it. Returns an input for the core if the budget is exhausted.
    pub(super) fn fund(&mut self, agent: &AgentId, budget: &mut SessionBudget) -> Option<Input> {
        let (request, model, estimate) = self.unfunded.take()?;
        match budget.admit(agent, estimate) {
            Admission::Go => self.open = Some((request, self.provider.stream(model))),
            Admission::Wait => self.unfunded = Some((request, model, estimate)),
            Admission::Spent(reason, message) => {
                return Some(Input::OutOfBudget { request, reason, message });
            }
        }
        None
    }

    pub(super) fn cancel(&mut self, request: RequestId) {
        self.unfunded.take_if(|(waiting, ..)| *waiting == request);
        self.open.take_if(|(running, _)| *running == request);
    }

    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Returns the next part of the reply; `None` if the stream ended. Pends while no stream is open. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Input> {
        let Some((request, events)) = &mut self.open else { return std::future::pending().await };
        let request = *request;
        match events.next().await {
            Some(Ok(event)) => Some(Input::Stream { request, event }),
            Some(Err(error)) => {
                self.open = None;
                Some(Input::StreamFailed { request, error })
            }
            None => {
                self.open = None;
                None
            }
        }
    }
}
