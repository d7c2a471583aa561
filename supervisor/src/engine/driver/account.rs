//! Totals of an agent's turns, and the report of a sub-agent to its parent.

use agent::core::{EndReason, RunEnd};
use ipc::id::{AgentId, CallId};
use protocol::cost::Usd;
use protocol::event::{SubAgentResult, SubAgentStatus, TokenUsage, TurnFinished};
use tokio::time::Instant;

use super::{Turns, millis};

/// Maximum number of characters of a sub-agent's last message for the parent's model. The log has the whole message.
const LONGEST_MESSAGE: usize = 16 << 10;

pub(super) struct RunAccount {
    turns: Turns,
    /// Start of the present turn; used only for an agent that may have several turns.
    turn_began: Option<Instant>,
    /// Totals of the earlier turns.
    totals: Totals,
    end: Option<RunEnd>,
}

#[derive(Debug, Default)]
struct Totals {
    steps: u32,
    usage: TokenUsage,
    cost: Usd,
    text: String,
}

impl RunAccount {
    pub(super) fn new(turns: Turns) -> Self {
        Self { turns, turn_began: None, totals: Totals::default(), end: None }
    }

    pub(super) fn has_one_turn(&self) -> bool {
        self.turns == Turns::One
    }

    pub(super) fn begin_turn(&mut self) {
        self.turn_began = Some(Instant::now());
    }

    /// Records the end of a turn. Returns the event to log; `None` if no further turn can follow.
    pub(super) fn end_turn(&mut self, end: RunEnd, is_closed: bool) -> Option<TurnFinished> {
        if self.has_one_turn() || is_closed {
            self.end = Some(end);
            return None;
        }
        let totals = &mut self.totals;
        totals.steps = totals.steps.saturating_add(end.steps);
        totals.usage += end.usage;
        totals.cost += end.cost.unwrap_or_default();
        totals.text = end.text;
        let began = self.turn_began.take();
        Some(TurnFinished {
            reason: end.reason,
            message: end.message,
            steps: end.steps,
            usage: end.usage,
            cost_usd: end.cost,
            duration_ms: began.map_or(0, |began| millis(began.elapsed())),
        })
    }

    /// Ends the run for a reason outside its turns, such as a failed session. Has no effect if the run has ended.
    pub(super) fn break_off(&mut self, reason: EndReason, message: String) {
        self.end.get_or_insert_with(|| RunEnd::without_account(reason, message));
    }

    pub(super) const fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn take(&mut self) -> Option<RunEnd> {
        let mut end = self.end.take()?;
        let Totals { steps, usage, cost, text } = std::mem::take(&mut self.totals);
        end.steps = end.steps.saturating_add(steps);
        end.usage += usage;
        // Prices are known for all turns of a session or for none.
        end.cost = end.cost.map(|last| last + cost);
        if end.text.is_empty() {
            end.text = text;
        }
        Some(end)
    }
}

/// Returns the report on a sub-agent that has no totals, such as one that was not started.
pub(super) fn empty_account(
    agent: AgentId,
    call: Option<CallId>,
    status: SubAgentStatus,
    message: Option<String>,
) -> SubAgentResult {
    SubAgentResult {
        agent,
        call,
        status,
        message,
        files: Vec::new(),
        unseen: None,
        denials: 0,
        denied: Vec::new(),
        steps: 0,
        usage: TokenUsage::default(),
        cost_usd: None,
        duration_ms: 0,
        plan: Vec::new(),
        text: String::new(),
    }
}

pub(super) fn account_of_end(agent: AgentId, call: Option<CallId>, end: Option<RunEnd>) -> SubAgentResult {
    let status = status(end.as_ref().map_or(EndReason::Internal, |end| end.reason));
    let account = empty_account(agent, call, status, None);
    let Some(RunEnd { message, steps, usage, cost, text, .. }) = end else { return account };
    SubAgentResult { message, steps, usage, cost_usd: cost, text: bounded(text), ..account }
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
        text.push_str("\n[… the rest of this message is left out]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(steps: u32, text: &str) -> RunEnd {
        RunEnd { steps, text: text.to_owned(), ..RunEnd::without_account(EndReason::Done, String::new()) }
    }

    #[tokio::test(start_paused = true)]
    async fn several_turns_have_one_account() {
        let mut account = RunAccount::new(Turns::Many);
        account.begin_turn();
        let finished = account.end_turn(end(2, "first"), false);
        assert!(
            finished.is_some_and(|turn| turn.steps == 2) && !account.is_over() && account.take().is_none()
        );
        assert!(account.end_turn(end(3, ""), true).is_none() && account.is_over());
        let all = account.take().unwrap();
        assert_eq!((all.steps, all.text.as_str()), (5, "first"));
    }

    #[test]
    fn one_turn_ends_the_run_and_the_first_end_counts() {
        let mut account = RunAccount::new(Turns::One);
        assert!(account.end_turn(end(1, "done"), false).is_none());
        account.break_off(EndReason::Internal, "a bug".to_owned());
        assert_eq!(account.take().map(|end| end.reason), Some(EndReason::Done));
    }
}
