//! Write turns: agents whose write roots overlap change files one after another, in the order of their requests.
//!
//! A turn lasts until all calls of a reply that writes are closed; for an ended sub-agent, until its worker is gone. An
//! agent that waits for sub-agents lends them its turn while no call of its own writes. If the roots of the sub-agents
//! overlap, one of them at a time has the turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ipc::id::{AgentId, CallId};
use ipc::path::WirePath;

#[derive(Debug, Default)]
pub(super) struct WriteTurns {
    holders: BTreeMap<AgentId, WriteTurn>,
    /// Agents that wait for a turn, with their roots, in the order of their requests.
    waiting: VecDeque<(AgentId, Vec<WirePath>)>,
    /// True if a waiting agent may be able to get a turn now.
    freed: bool,
}

#[derive(Debug, Default)]
struct WriteTurn {
    roots: Vec<WirePath>,
    writing: BTreeSet<CallId>,
}

impl WriteTurns {
    /// Takes a turn for these roots. If other agents hold the turn, queues the request and returns these agents.
    pub(super) fn take(&mut self, agent: &AgentId, roots: Vec<WirePath>) -> Result<(), Vec<AgentId>> {
        let holders = self.blocking(agent, &roots);
        if holders.is_empty() && !self.is_behind_others(agent, &roots) {
            self.waiting.retain(|(waiting, _)| waiting != agent);
            self.holders.entry(agent.clone()).or_default().roots.extend(roots);
            return Ok(());
        }
        match self.waiting.iter_mut().find(|(waiting, _)| waiting == agent) {
            Some((_, wanted)) => *wanted = roots,
            None => self.waiting.push_back((agent.clone(), roots)),
        }
        Err(holders)
    }

    /// Returns the agents whose turns overlap with these roots, without those that lend `agent` their turn.
    fn blocking(&self, agent: &AgentId, roots: &[WirePath]) -> Vec<AgentId> {
        let blocks = |(holder, turn): &(&AgentId, &WriteTurn)| {
            *holder != agent
                && overlap(&turn.roots, roots)
                && !(agent.is_below(holder) && turn.writing.is_empty())
        };
        self.holders.iter().filter(blocks).map(|(holder, _)| holder.clone()).collect()
    }

    /// True if another agent requested overlapping roots earlier. Such a request does not count if that agent waits for
    /// the turn of `agent` or of an agent above it, because that turn cannot end first.
    fn is_behind_others(&self, agent: &AgentId, roots: &[WirePath]) -> bool {
        let earlier = self.waiting.iter().take_while(|(waiting, _)| waiting != agent);
        let mut rivals = earlier.filter(|(_, wanted)| overlap(wanted, roots));
        rivals.any(|(rival, wanted)| {
            let blocking = self.blocking(rival, wanted);
            !blocking.iter().any(|holder| holder == agent || agent.is_below(holder))
        })
    }

    /// Records the start of a call that may write, of an agent that holds a turn.
    pub(super) fn begin(&mut self, agent: &AgentId, call: CallId) {
        if let Some(turn) = self.holders.get_mut(agent) {
            turn.writing.insert(call);
        }
    }

    pub(super) fn end(&mut self, agent: &AgentId, call: CallId) {
        let ended = self.holders.get_mut(agent).is_some_and(|turn| turn.writing.remove(&call));
        self.freed |= ended && !self.waiting.is_empty();
    }

    /// Ends an agent's turn and its request, once the calls of the agent's reply are closed or the agent is gone.
    pub(super) fn give_back(&mut self, agent: &AgentId) {
        let waited = self.waiting.len();
        self.waiting.retain(|(waiting, _)| waiting != agent);
        let had = self.holders.remove(agent).is_some() || self.waiting.len() < waited;
        self.freed |= had && !self.waiting.is_empty();
    }

    /// True if a waiting agent may be able to get a turn now. Only the first call after a change returns true.
    pub(super) fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }
}

/// True if a path of one list equals or is below a path of the other.
pub(super) fn overlap(some: &[WirePath], others: &[WirePath]) -> bool {
    some.iter().any(|one| others.iter().any(|other| one.is_within(other) || other.is_within(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::from(text)
    }

    fn roots(path: &str) -> Vec<WirePath> {
        vec![path.into()]
    }

    fn take(turns: &mut WriteTurns, agent: &str, path: &str) -> bool {
        turns.take(&id(agent), roots(path)).is_ok()
    }

    #[test]
    fn only_agents_with_overlapping_roots_wait_for_each_other() {
        let mut turns = WriteTurns::default();
        assert!(take(&mut turns, "1.1", "/p/a") && take(&mut turns, "1.2", "/p/b"));
        assert_eq!(turns.take(&id("1.3"), roots("/p/a/sub")), Err(vec![id("1.1")]));
        assert!(!take(&mut turns, "1.4", "/p"), "a root above both");
        turns.give_back(&id("1.1"));
        assert!(turns.take_freed() && !turns.take_freed());
        assert!(!take(&mut turns, "1.4", "/p"), "it asked later than 1.3, and 1.2 has its turn");
        assert!(take(&mut turns, "1.3", "/p/a/sub"));
    }

    #[test]
    fn an_agent_lends_its_turn_to_one_sub_agent_at_a_time_and_not_while_it_writes() {
        let mut turns = WriteTurns::default();
        assert!(take(&mut turns, "1", "/p"));
        turns.begin(&id("1"), CallId(1));
        assert!(!take(&mut turns, "1.1", "/p"));
        turns.end(&id("1"), CallId(1));
        assert!(turns.take_freed());
        assert!(take(&mut turns, "1.1", "/p") && !take(&mut turns, "1.2", "/p"));
        assert!(!take(&mut turns, "1", "/p"), "it is lent");
        turns.give_back(&id("1.1"));
        assert!(take(&mut turns, "1.2", "/p"));
    }

    #[test]
    fn whoever_an_agent_waits_for_is_served_before_it() {
        let mut turns = WriteTurns::default();
        assert!(take(&mut turns, "1.1", "/p"));
        assert!(!take(&mut turns, "1.2", "/p"));
        // 1.1 waits for its own sub-agent, which asked later than 1.2.
        assert!(take(&mut turns, "1.1.1", "/p"));
        turns.give_back(&id("1.1.1"));
        turns.give_back(&id("1.1"));
        assert!(take(&mut turns, "1.2", "/p"));
    }

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
        }
    }

    /// Agent of a random tree. It writes, waits for its children, writes again, and so on.
    struct Actor {
        id: AgentId,
        roots: Vec<WirePath>,
        children: Vec<usize>,
        /// Number of replies left. In each, the agent writes, waits for new children, and gives up its turn.
        left: usize,
        begun: bool,
        holds: bool,
    }

    /// Returns a random tree. No agent may write where its parent may not: otherwise agents could wait for each other.
    fn tree(dice: &mut Dice) -> Vec<Actor> {
        let paths = ["/p", "/p/a", "/p/b", "/p/a/c", "/p/a/c/d"].map(WirePath::from);
        let mut actors: Vec<Actor> = Vec::new();
        for number in 0..2 + dice.below(10) {
            let parent = (number > 0).then(|| dice.below(number));
            let (id, within) = match parent {
                None => (id("1"), WirePath::from("/p")),
                Some(parent) => {
                    let child = actors[parent].children.len() + 1;
                    actors[parent].children.push(number);
                    (AgentId(format!("{}.{child}", actors[parent].id)), actors[parent].roots[0].clone())
                }
            };
            let inside: Vec<_> = paths.iter().filter(|path| path.is_within(&within)).collect();
            let roots = vec![inside[dice.below(inside.len())].clone()];
            let left = 1 + dice.below(3);
            actors.push(Actor { id, roots, children: vec![], left, begun: number == 0, holds: false });
        }
        actors
    }

    #[test]
    fn in_random_trees_everybody_gets_a_turn_and_no_two_write_the_same_places() {
        for seed in 0..10_000 {
            let mut dice = Dice(seed);
            let (mut actors, mut turns, mut idle) = (tree(&mut dice), WriteTurns::default(), 0);
            while actors.iter().any(|actor| actor.begun && actor.left > 0) {
                let at_work: Vec<_> =
                    (0..actors.len()).filter(|at| actors[*at].begun && actors[*at].left > 0).collect();
                let at = at_work[dice.below(at_work.len())];
                let waits =
                    actors[at].children.iter().any(|child| actors[*child].begun && actors[*child].left > 0);
                if !actors[at].holds {
                    let (id, wanted) = (actors[at].id.clone(), actors[at].roots.clone());
                    actors[at].holds = turns.take(&id, wanted).is_ok();
                    idle = if actors[at].holds { 0 } else { idle + 1 };
                    assert!(idle < 5_000, "seed {seed}: nobody gets on");
                    if actors[at].holds {
                        let rivals = actors.iter().filter(|other| {
                            other.holds
                                && other.id != id
                                && !id.is_below(&other.id)
                                && overlap(&other.roots, &actors[at].roots)
                        });
                        assert_eq!(rivals.count(), 0, "seed {seed}: two agents write the same places");
                        // It starts its remaining children in the same reply.
                        for child in actors[at].children.clone() {
                            actors[child].begun = true;
                        }
                    }
                } else if !waits {
                    turns.give_back(&actors[at].id.clone());
                    (actors[at].holds, actors[at].left, idle) = (false, actors[at].left - 1, 0);
                }
            }
        }
    }
}
