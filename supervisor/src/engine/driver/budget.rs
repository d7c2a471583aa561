//! Budget of the session. Each request reserves its estimated cost until its usage is known, so that agents that work
//! at the same time do not spend the same tokens twice. A request waits if the reservations of other agents leave less
//! than its estimate.

use std::collections::BTreeMap;

use ipc::id::AgentId;
use protocol::cost::Usd;
use protocol::event::{Account, EventKind};

use agent::core::{EndReason, Estimate, RunLimits};

/// Tokens, money and replies that all agents of a session have used, and the limits on them.
#[derive(Debug, Default)]
pub(super) struct SessionBudget {
    limits: RunLimits,
    spent: Account,
    /// Number of replies of all agents' models since the start of the turn.
    replies: u32,
    /// Spending of sub-agents that no top-level agent's account includes yet. Included in `spent`.
    below: Account,
    /// Spending of sub-agents between turns, such as planners. Only the session's result includes it.
    outside: Account,
    /// Estimates of open requests, one for each agent.
    reserved: BTreeMap<AgentId, Estimate>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Go,
    Wait,
    /// A limit is exhausted. The fields are the reason for the end, and a sentence about it.
    Spent(EndReason, String),
}

impl SessionBudget {
    pub(super) fn new(limits: RunLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Resets the spending at the start of a turn. Limits apply to one turn, with everything that sub-agents do for it.
    pub(super) fn begin_turn(&mut self) {
        (self.spent, self.replies) = (Account::default(), 0);
        self.outside += std::mem::take(&mut self.below);
    }

    pub(super) fn admit(&mut self, agent: &AgentId, estimate: Estimate) -> Admission {
        if let Some((reason, message)) = self.exhausted() {
            return Admission::Spent(reason, message);
        }
        let others = || self.reserved.iter().filter(|(holder, _)| *holder != agent).map(|(_, of)| of);
        let tokens: u64 = others().fold(self.spent.usage.total(), |sum, of| sum.saturating_add(of.tokens));
        let cost =
            others().filter_map(|of| of.cost).fold(self.spent.cost.unwrap_or_default(), |sum, of| sum + of);
        let open = u32::try_from(others().count()).unwrap_or(u32::MAX);
        let is_over = self.limits.max_steps.is_some_and(|max| self.replies.saturating_add(open) >= max)
            || self.limits.max_tokens.is_some_and(|max| tokens >= max)
            || self.limits.max_usd.is_some_and(|max| cost >= max);
        if is_over {
            return Admission::Wait;
        }
        self.reserved.insert(agent.clone(), estimate);
        Admission::Go
    }

    fn exhausted(&self) -> Option<(EndReason, String)> {
        let RunLimits { max_steps, max_tokens, max_usd } = self.limits;
        if let Some(max) = max_steps.filter(|max| self.replies >= *max) {
            return Some((EndReason::StepLimit, format!("the limit of {max} steps is reached")));
        }
        if let Some(max) = max_tokens.filter(|max| self.spent.usage.total() >= *max) {
            return Some((EndReason::TokenLimit, format!("the limit of {max} tokens is reached")));
        }
        let spent = self.spent.cost.unwrap_or_default();
        let max = max_usd.filter(|max| spent >= *max)?;
        let message = format!("the limit of {max} is reached: the requests so far cost {spent}");
        Some((EndReason::CostLimit, message))
    }

    /// Adds the spending that an event reports. True if the event ended a reservation.
    pub(super) fn note(&mut self, agent: &AgentId, event: &EventKind) -> bool {
        let account = match event {
            EventKind::ModelFailed { .. } => Account::default(),
            other => match other.spent() {
                Some(account) => account,
                None => return false,
            },
        };
        self.spent += account;
        if matches!(event, EventKind::AssistantMessage(_)) {
            self.replies = self.replies.saturating_add(1);
        }
        if !agent.is_top_level() {
            self.below += account;
        }
        self.settle(agent)
    }

    /// Releases the reservation of an agent's request. True if there was one.
    pub(super) fn settle(&mut self, agent: &AgentId) -> bool {
        self.reserved.remove(agent).is_some()
    }

    /// Returns and resets the spending of sub-agents since the start of the turn or the previous call of this method.
    pub(super) fn take_below(&mut self) -> Account {
        std::mem::take(&mut self.below)
    }

    /// Returns and resets the spending of sub-agents that no agent's account includes.
    pub(super) fn take_rest(&mut self) -> Account {
        let mut rest = std::mem::take(&mut self.outside);
        rest += self.take_below();
        rest
    }

    #[cfg(test)]
    fn reserved_tokens(&self) -> u64 {
        self.reserved.values().map(|of| of.tokens).sum()
    }
}

/// Adds the cost of sub-agents to an agent's own cost; `None` if the agent's own cost is unknown.
pub(super) fn with_below(own: Option<Usd>, below: Account) -> Option<Usd> {
    own.map(|own| own + below.cost.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use protocol::event::{AssistantMessage, TokenUsage};

    use super::*;

    fn budget(max_tokens: u64) -> SessionBudget {
        SessionBudget::new(RunLimits { max_tokens: Some(max_tokens), ..RunLimits::default() })
    }

    fn estimate(tokens: u64) -> Estimate {
        Estimate { tokens, cost: None }
    }

    fn reply(tokens: u64) -> EventKind {
        EventKind::AssistantMessage(AssistantMessage {
            message_id: String::new(),
            model: String::new(),
            content: vec![],
            stop_reason: "end_turn".to_owned(),
            usage: TokenUsage { input: tokens, ..TokenUsage::default() },
            estimated: false,
            cost_usd: None,
        })
    }

    #[test]
    fn one_agent_goes_on_until_its_tokens_are_spent() {
        let (mut budget, agent) = (budget(100), AgentId::root());
        assert_eq!(budget.admit(&agent, estimate(5_000)), Admission::Go, "an estimate alone denies nothing");
        assert!(budget.note(&agent, &reply(60)));
        assert_eq!(budget.admit(&agent, estimate(5_000)), Admission::Go);
        budget.note(&agent, &reply(60));
        assert!(matches!(budget.admit(&agent, estimate(1)), Admission::Spent(EndReason::TokenLimit, _)));
        budget.begin_turn();
        assert_eq!(budget.admit(&agent, estimate(1)), Admission::Go);
    }

    #[test]
    fn agents_at_work_together_do_not_spend_the_same_tokens() {
        let mut budget = budget(100);
        let [one, two, three] = ["1.1", "1.2", "1.3"].map(AgentId::from);
        assert_eq!(budget.admit(&one, estimate(70)), Admission::Go);
        assert_eq!(budget.admit(&two, estimate(70)), Admission::Go);
        assert_eq!(budget.admit(&three, estimate(1)), Admission::Wait);
        assert!(budget.note(&one, &reply(10)), "it came to less");
        assert_eq!(budget.admit(&three, estimate(1)), Admission::Go);
        assert!(budget.settle(&two) && !budget.settle(&two));
        assert_eq!(budget.reserved_tokens(), 1);
        assert_eq!(budget.take_below().usage.total(), 10);
        assert_eq!(budget.take_below(), Account::default());
    }

    #[test]
    fn the_replies_of_all_agents_are_counted_together() {
        let mut budget = SessionBudget::new(RunLimits { max_steps: Some(3), ..RunLimits::default() });
        let [one, two, three] = ["1", "1.1", "1.1.1"].map(AgentId::from);
        budget.note(&one, &reply(1));
        assert_eq!(budget.admit(&two, estimate(1)), Admission::Go);
        assert_eq!(budget.admit(&three, estimate(1)), Admission::Go);
        assert_eq!(budget.admit(&one, estimate(1)), Admission::Wait, "the open ones may be the last");
        budget.settle(&three);
        assert_eq!(budget.admit(&one, estimate(1)), Admission::Go);
        budget.note(&two, &reply(1));
        budget.note(&one, &reply(1));
        for agent in [&one, &two, &three] {
            let Admission::Spent(EndReason::StepLimit, _) = budget.admit(agent, estimate(1)) else {
                panic!("{agent} goes on")
            };
        }
        budget.begin_turn();
        assert_eq!(budget.admit(&two, estimate(1)), Admission::Go);
    }

    #[test]
    fn what_was_spent_before_a_turn_is_not_put_down_to_it() {
        let mut budget = budget(100);
        budget.note(&"1.1".into(), &reply(10));
        budget.begin_turn();
        budget.note(&"1.2".into(), &reply(5));
        assert_eq!(budget.take_below().usage.total(), 5);
        budget.note(&"1.3".into(), &reply(2));
        assert_eq!(budget.take_rest().usage.total(), 12);
        assert_eq!(budget.take_rest(), Account::default());
    }
}
