//! The account of a sub-agent: what the supervisor knows of its end, and then its last message, bounded.

use agent::core::{EndReason, Execution};
use ipc::id::CallId;
use protocol::event::{SubAgentResult, SubAgentStatus};
use tokio::time::Instant;

use super::written_files::Written;
use super::{AgentRun, millis};

/// The most characters of a sub-agent's last message that its parent reads; the log has all of it.
const LONGEST_MESSAGE: usize = 16 << 10;

impl AgentRun {
    /// The account of a sub-agent that is over, of this call and begun then.
    pub(super) fn report(
        &mut self,
        call: Option<CallId>,
        began: Instant,
        written: Written,
    ) -> SubAgentResult {
        // Those of its file tools are known whether or not somebody looked, and also where git ignores them.
        let files = self.calls.changed().union(&written.files).cloned().collect();
        let (denials, denied) = self.sink.take_denials();
        let end = self.account();
        let reason = end.as_ref().map_or(EndReason::Internal, |end| end.reason);
        let (steps, usage, cost_usd) =
            end.as_ref().map_or_else(Default::default, |end| (end.steps, end.usage, end.cost));
        SubAgentResult {
            agent: self.sink.agent().clone(),
            call,
            status: status(reason),
            message: end.as_ref().and_then(|end| end.message.clone()),
            files,
            unseen: written.unseen,
            denials,
            denied,
            steps,
            usage,
            cost_usd,
            duration_ms: millis(began.elapsed()),
            plan: self.agent.execution().map(Execution::account).unwrap_or_default(),
            text: end.map(|end| bounded(end.text)).unwrap_or_default(),
        }
    }
}

const fn status(reason: EndReason) -> SubAgentStatus {
    match reason {
        EndReason::Done => SubAgentStatus::Done,
        EndReason::DeniedAtEnd => SubAgentStatus::Denied,
        EndReason::GaveUp
        | EndReason::NothingSaid
        | EndReason::CallAsText
        | EndReason::SchemaUnmet
        | EndReason::Refusal
        | EndReason::ContextFull => SubAgentStatus::GaveUp,
        EndReason::StepLimit | EndReason::TokenLimit | EndReason::CostLimit | EndReason::TimeLimit => {
            SubAgentStatus::Budget
        }
        EndReason::Provider => SubAgentStatus::Provider,
        EndReason::Aborted
        | EndReason::Interrupted
        | EndReason::Closed
        | EndReason::Terminated
        | EndReason::HungUp => SubAgentStatus::Interrupted,
        EndReason::NoSandbox | EndReason::Internal => SubAgentStatus::Crashed,
    }
}

fn bounded(mut text: String) -> String {
    if let Some((cut, _)) = text.char_indices().nth(LONGEST_MESSAGE) {
        text.truncate(cut);
        text.push_str("\n[… the rest of it is left out]");
    }
    text
}
