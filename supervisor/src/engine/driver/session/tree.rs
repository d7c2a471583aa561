//! The tree of a session's agents: sub-agents start, lose rights with their parents, and end with everything below them.
//!
//! The core of an agent orders starts and ends ([`TreeOrder`](super::super::tree_order::TreeOrder)). The session carries them out between two
//! inputs: so agents are added and taken out while none of them is at work.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent::core::{Agent, NewAgent, Planning, TreeLimits};
use boundary::monitor::WorkerEvent;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use gate::modes::{Position, permits};
use gate::{Change, StandingRights, narrowed_grant};
use ipc::id::{AgentId, CallId, Generation};
use ipc::rights::{Grant, Network, RightsChange};
use protocol::frontend::AgentAction;
use tokio::time::Instant;

use super::super::AgentRun;
use super::newcomer::{NotStartedAgent, Opened, Permitted, Placed, WantedAgent};

/// Makes the agent runs of sub-agents.
pub trait OpensAgents: Send {
    /// A sub-agent that has not begun, with a place of its own.
    fn open(&mut self, id: &AgentId, agent: &NewAgent) -> Result<OpenedAgent, NotOpened>;

    /// The planning of a planner beside an agent with these rights, which bound those of execution; none where no
    /// plans are made.
    fn planning(&self, ceiling: StandingRights) -> Option<Planning>;
}

/// The reason why there is no sub-agent: a sentence for its parent's model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// Its rights are none that anybody has.
    Denied(String),
    /// Something is missing, or failed.
    Failed(String),
}

impl From<String> for NotOpened {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// A sub-agent that has not begun.
pub struct OpenedAgent {
    pub run: AgentRun,
    /// Its model's name.
    pub model: String,
    /// SHA-256 of its rights, in hexadecimal.
    pub rights_digest: String,
}

/// The sub-agents of a session.
pub(super) struct AgentTree {
    opener: Option<Box<dyn OpensAgents>>,
    limits: TreeLimits,
    living: BTreeMap<AgentId, Child>,
    /// Sub-agents that wait for others of their level to end, in order.
    waiting: VecDeque<Permitted>,
    ending: FuturesUnordered<BoxFuture<'static, Closed>>,
    /// Sub-agents without a process, until everything below them is gone too.
    closed: Vec<Closed>,
    /// Number of sub-agents that each agent has had.
    numbers: BTreeMap<AgentId, u32>,
}

/// A sub-agent as its parent knows it.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) parent: AgentId,
    /// The call of its parent that asked for it; none where the user did.
    pub(super) call: Option<CallId>,
    /// The part of its rights that its parent does not have, as far as the user has not taken it back.
    pub(super) grant: Grant,
    pub(super) began: Instant,
}

/// A sub-agent whose worker is gone, with nothing below it: its parent hears of its end.
pub(super) struct FinishedAgent(Closed);

/// A sub-agent whose worker is gone, and that worker's last words.
pub(super) struct Closed {
    run: Box<AgentRun>,
    last: Vec<(Generation, WorkerEvent)>,
}

impl Closed {
    pub(super) fn id(&self) -> &AgentId {
        self.run.id()
    }
}

impl FinishedAgent {
    /// The run, and the last events of its worker.
    pub(super) fn into_parts(self) -> (AgentRun, Vec<(Generation, WorkerEvent)>) {
        (*self.0.run, self.0.last)
    }
}

impl AgentTree {
    pub(super) fn new(opener: Option<Box<dyn OpensAgents>>, limits: TreeLimits) -> Self {
        Self {
            opener,
            limits,
            living: BTreeMap::new(),
            waiting: VecDeque::new(),
            ending: FuturesUnordered::new(),
            closed: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Takes no number that a sub-agent of an earlier run had.
    pub(super) fn after(&mut self, agents: &[AgentId]) {
        for agent in agents {
            let Some((parent, number)) = agent.as_str().rsplit_once('.') else { continue };
            let last = self.numbers.entry(AgentId::from(parent)).or_default();
            *last = (*last).max(number.parse().unwrap_or(0));
        }
    }

    /// The next sub-agent whose worker is gone; pends while none ends. Cancel safe.
    pub(super) async fn next(&mut self) -> Closed {
        match self.ending.next().await {
            Some(closed) => closed,
            None => std::future::pending().await,
        }
    }

    pub(super) fn planning(&self, ceiling: StandingRights) -> Option<Planning> {
        self.opener.as_ref()?.planning(ceiling)
    }

    /// Takes back from executors that wait what the user takes back.
    pub(super) fn take_back_from_waiting(&mut self, change: &Change) {
        self.waiting.iter_mut().for_each(|waiting| waiting.take_back(change));
    }

    fn has_living_below(&self, agent: &AgentId) -> bool {
        self.living.keys().any(|living| living.is_below(agent))
    }

    /// Numbers a sub-agent that this parent wants for a call, or the user beside it.
    pub(super) fn number(
        &mut self,
        parent: AgentId,
        call: Option<CallId>,
        agent: Box<NewAgent>,
    ) -> WantedAgent {
        let number = self.numbers.entry(parent.clone()).or_default();
        *number = number.saturating_add(1);
        WantedAgent::new(AgentId(format!("{parent}.{number}")), parent, call, agent)
    }

    /// Holds a sub-agent to the session's limits.
    pub(super) fn permit(
        &self,
        wanted: WantedAgent,
        started_this_turn: u32,
    ) -> Result<Permitted, NotStartedAgent> {
        wanted.permit(self.opener.is_some(), &self.limits, started_this_turn)
    }

    /// Gives a sub-agent a place among those of its level; without one it waits.
    pub(super) fn place(&mut self, permitted: Permitted) -> Option<Placed> {
        let free = self.free_places(permitted.id());
        match permitted.place(free) {
            Ok(placed) => Some(placed),
            Err(permitted) => {
                self.waiting.push_back(permitted);
                None
            }
        }
    }

    /// Returns the first sub-agent that waited and has a place now.
    pub(super) fn next_placed(&mut self) -> Option<Placed> {
        let at = self.waiting.iter().position(|waiting| self.free_places(waiting.id()) > 0)?;
        let permitted = self.waiting.remove(at)?;
        permitted.place(1).ok()
    }

    /// Opens a sub-agent of this parent.
    pub(super) fn open(&mut self, placed: Placed, parent: Option<&Agent>) -> Result<Opened, NotStartedAgent> {
        placed.bound(parent)?.open(self.opener.as_deref_mut(), parent)
    }

    pub(super) fn insert(&mut self, id: AgentId, child: Child) {
        self.living.insert(id, child);
    }

    /// Removes a sub-agent. Returns what its parent knows of it.
    pub(super) fn remove(&mut self, id: &AgentId) -> Option<Child> {
        self.living.remove(id)
    }

    pub(super) fn is_living(&self, id: &AgentId) -> bool {
        self.living.contains_key(id)
    }

    /// The living sub-agents, those above first.
    pub(super) fn living_from_above(&self) -> Vec<AgentId> {
        let by_level: BTreeSet<_> = self.living.keys().map(|id| (id.level(), id.clone())).collect();
        by_level.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn child(&self, id: &AgentId) -> Option<&Child> {
        self.living.get(id)
    }

    /// The sub-agent that lives for this call of its parent. One that waits for it is forgotten.
    pub(super) fn end(&mut self, parent: &AgentId, call: CallId) -> Option<AgentId> {
        let is_of_call = |child: &Child| child.parent == *parent && child.call == Some(call);
        self.waiting.retain(|waiting| !is_of_call(waiting.child()));
        self.living.iter().find(|(_, child)| is_of_call(child)).map(|(id, _)| id.clone())
    }

    /// Begins to end a sub-agent that is over, and forgets those that wait below it. Returns the calls of those that live.
    pub(super) fn close(&mut self, run: AgentRun) -> Vec<CallId> {
        self.waiting.retain(|waiting| waiting.child().parent != *run.id());
        let below = self.living.values().filter(|child| child.parent == *run.id());
        let calls = below.filter_map(|child| child.call).collect();
        self.ending.push(Box::pin(close(run)));
        calls
    }

    /// True while a sub-agent is being ended.
    pub(super) fn any_ends(&self) -> bool {
        !self.ending.is_empty()
    }

    /// Takes a sub-agent whose worker is gone.
    pub(super) fn take_closed(&mut self, closed: Closed) {
        self.closed.push(closed);
    }

    /// Sub-agents whose workers are gone, and of which no parent has heard.
    pub(super) fn closed(&self) -> impl Iterator<Item = &AgentId> {
        self.closed.iter().map(|closed| closed.run.id())
    }

    /// Returns a sub-agent that is gone with everything below it, unless its files are still looked at.
    pub(super) fn next_finished(
        &mut self,
        mut is_open: impl FnMut(&AgentId) -> bool,
    ) -> Option<FinishedAgent> {
        let is_alone = |id: &AgentId| !self.has_living_below(id);
        let is_next = |closed: &Closed| is_alone(closed.run.id()) && !is_open(closed.run.id());
        let at = self.closed.iter().position(is_next)?;
        Some(FinishedAgent(self.closed.swap_remove(at)))
    }

    /// Number of places that are free at the level of a sub-agent. Levels are counted apart: an agent that waits for sub-agents of its own
    /// takes no place from them.
    fn free_places(&self, id: &AgentId) -> usize {
        let at_work =
            self.living.iter().filter(|(living, child)| living.level() == id.level() && child.call.is_some());
        (self.limits.at_once as usize).saturating_sub(at_work.count())
    }

    /// Takes back what an action of the user's withdraws from every sub-agent; true if anything of a grant went.
    pub(super) fn withdraw(&mut self, action: &AgentAction) -> bool {
        let without = |grant: &Grant| match action {
            AgentAction::SetRights { change: RightsChange::RemoveWrite { path } } => {
                narrowed_grant(grant, &Network::On, Some(path))
            }
            AgentAction::SetRights { change } => change
                .network_bound()
                .map_or_else(|| grant.clone(), |bound| narrowed_grant(grant, bound, None)),
            AgentAction::SetMode { mode } if !permits(Position::SUB, *mode).keeps_approvals() => {
                Grant::default()
            }
            _ => grant.clone(),
        };
        let grants = self.living.values_mut().chain(self.waiting.iter_mut().map(Permitted::child_mut));
        grants.fold(false, |changed, child| {
            let left = without(&child.grant);
            let less = left != child.grant;
            child.grant = left;
            changed || less
        })
    }
}

async fn close(mut run: AgentRun) -> Closed {
    let last = run.wind_up().await;
    Closed { run: Box::new(run), last }
}
