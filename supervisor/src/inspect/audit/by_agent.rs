//! The events of a log grouped by agent. The grouping visits each event only once.

use std::collections::HashMap;

use ipc::id::{AgentId, EventId};
use protocol::event::{Account, EventKind, SessionEvent};

use crate::journal::session::Tree;

#[derive(Debug)]
pub(super) struct EventsByAgent<'a> {
    began_ms: u64,
    /// Events of each agent in the order of the log, including the events of its start and end.
    about: HashMap<&'a AgentId, Vec<&'a SessionEvent>>,
    accounts: HashMap<&'a AgentId, Account>,
    with_sub_agents: HashMap<&'a AgentId, Account>,
    /// The last event that ends the session. Each process that continued the session has logged one.
    last_end: Option<EventId>,
}

impl<'a> EventsByAgent<'a> {
    pub(super) fn of(tree: &'a Tree) -> Self {
        let mut about: HashMap<_, Vec<_>> = HashMap::new();
        let mut ends = Vec::new();
        for event in tree.events() {
            about.entry(&event.agent).or_default().push(event);
            if let Some(agent) = named(event).filter(|agent| **agent != event.agent) {
                about.entry(agent).or_default().push(event);
            }
            if matches!(event.kind, EventKind::Result(_)) {
                ends.push(event);
            }
        }
        for (agent, events) in about.iter_mut().filter(|(agent, _)| agent.is_top_level()) {
            events.extend(ends.iter().filter(|end| end.agent != **agent));
            events.sort_by_key(|event| event.id);
        }
        let accounts = tree.accounts();
        let with_sub_agents = summed(about.keys().copied().collect(), &accounts);
        Self {
            began_ms: tree.events().next().map_or(0, |event| event.time_ms),
            about,
            accounts,
            with_sub_agents,
            last_end: ends.last().map(|end| end.id),
        }
    }

    pub(super) fn agents(&self) -> Vec<AgentId> {
        let mut agents: Vec<_> = self.about.keys().copied().cloned().collect();
        agents.sort_by(|one, other| one.in_tree().cmp(&other.in_tree()));
        agents
    }

    /// Returns the time of the first event, in milliseconds since 1970.
    pub(super) const fn began_ms(&self) -> u64 {
        self.began_ms
    }

    /// Returns the events about an agent: its own, and for a sub-agent also its parent's events of the start and end.
    pub(super) fn about(&self, agent: &AgentId) -> &[&'a SessionEvent] {
        self.about.get(agent).map_or(&[], Vec::as_slice)
    }

    pub(super) fn own(&self, agent: &AgentId) -> impl DoubleEndedIterator<Item = &'a SessionEvent> {
        self.about(agent).iter().copied().filter(move |event| event.agent == *agent)
    }

    /// True if an event that ends the session follows the event `id`.
    pub(super) fn ends_after(&self, id: EventId) -> bool {
        self.last_end.is_some_and(|end| end > id)
    }

    pub(super) fn account(&self, agent: &AgentId) -> Account {
        self.accounts.get(agent).copied().unwrap_or_default()
    }

    pub(super) fn account_with_sub_agents(&self, agent: &AgentId) -> Account {
        self.with_sub_agents.get(agent).copied().unwrap_or_default()
    }
}

fn named(event: &SessionEvent) -> Option<&AgentId> {
    match &event.kind {
        EventKind::SubAgentSpawned(spawned) => Some(&spawned.agent),
        EventKind::SubAgentResult(result) => Some(&result.agent),
        _ => None,
    }
}

/// Returns the totals of each agent with its sub-agents. Long agent names in a forged log cost no quadratic time.
fn summed<'a>(
    mut agents: Vec<&'a AgentId>,
    accounts: &HashMap<&AgentId, Account>,
) -> HashMap<&'a AgentId, Account> {
    // Names are compared by their parts, so that sub-agents follow their agent directly.
    agents.sort_by(|one, other| one.as_str().split('.').cmp(other.as_str().split('.')));
    let mut sums: Vec<_> =
        agents.iter().map(|agent| accounts.get(agent).copied().unwrap_or_default()).collect();
    let mut above: Vec<Option<usize>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (index, agent) in agents.iter().enumerate() {
        while open.pop_if(|last| !agent.is_below(agents[*last])).is_some() {}
        above.push(open.last().copied());
        open.push(index);
    }
    for (index, above) in above.into_iter().enumerate().rev() {
        if let Some(above) = above {
            let sum = sums[index];
            sums[above] += sum;
        }
    }
    agents.into_iter().zip(sums).collect()
}

#[cfg(test)]
mod tests {
    use protocol::event::TokenUsage;

    use super::*;

    #[test]
    fn an_agent_has_the_sum_of_everything_below_it_whatever_agents_are_called() {
        let names = ["1", "1.1", "1.1-", "1.1.1", "1.10", "1.2.3", "1.x", "1.x.1", "1.y", "2", "", "."];
        let agents = names.map(AgentId::from);
        let account = |input| Account::of(TokenUsage { input, ..TokenUsage::default() }, None);
        let accounts: HashMap<_, _> =
            agents.iter().enumerate().map(|(index, agent)| (agent, account(1 << index))).collect();
        let sums = summed(agents.iter().collect(), &accounts);
        for agent in &agents {
            let below = agents.iter().filter(|other| *other == agent || other.is_below(agent));
            let expected: u64 = below.map(|other| accounts[other].usage.input).sum();
            assert_eq!(sums[agent].usage.input, expected, "{agent}");
        }
    }
}
