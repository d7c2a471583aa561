//! Tree of a session's agents. An agent's core orders starts and ends
//! ([`TreeOrder`](super::super::tree_order::TreeOrder)), which the session carries out between two inputs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent::core::{Agent, NewAgent, Planning, TreeLimits};
use boundary::monitor::WorkerEvent;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use gate::judgement::spawn;
use gate::modes::{Position, permits};
use gate::{Change, StandingRights};
use ipc::id::{AgentId, CallId, Generation};
use ipc::rights::{Grant, Network, RightsChange};
use protocol::frontend::AgentAction;
use tokio::time::Instant;

use super::super::AgentRun;
use super::newcomer::{NotStartedAgent, Opened, Permitted, Placed, WantedAgent};

/// Creates the agent runs of sub-agents.
pub trait OpensAgents: Send {
    /// Returns a sub-agent that has its own directories. The sub-agent's run has not begun.
    fn open(&mut self, id: &AgentId, agent: &NewAgent) -> Result<OpenedAgent, NotOpened>;

    /// Returns the data for a planner whose executors get at most the access `ceiling`; `None` if plans are off.
    fn planning(&self, ceiling: StandingRights) -> Option<Planning>;
}

/// Reason why a sub-agent cannot start, as text for its parent's model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// The session may give no agent the requested access.
    Denied(String),
    /// Something else is missing, or failed.
    Failed(String),
}

impl From<String> for NotOpened {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

pub struct OpenedAgent {
    pub run: AgentRun,
    pub model: String,
    /// SHA-256 of the agent's access, in hexadecimal.
    pub rights_digest: String,
}

pub(super) struct AgentTree {
    opener: Option<Box<dyn OpensAgents>>,
    limits: TreeLimits,
    living: BTreeMap<AgentId, Child>,
    /// Sub-agents that wait for a free slot at their level of the tree, in the order of their requests.
    waiting: VecDeque<Permitted>,
    ending: FuturesUnordered<BoxFuture<'static, Closed>>,
    /// Sub-agents whose worker has ended. They stay here until all sub-agents below them have ended too.
    closed: Vec<Closed>,
    numbers: BTreeMap<AgentId, u32>,
}

/// Data about a sub-agent for its parent.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) parent: AgentId,
    /// Call of the parent that asked for the sub-agent; `None` if the user asked for it.
    pub(super) call: Option<CallId>,
    /// Access that the user approved beyond the parent's, without access that was withdrawn since.
    pub(super) grant: Grant,
    pub(super) began: Instant,
}

/// A sub-agent whose worker has ended and that has no sub-agent below it. Its parent can be informed.
pub(super) struct FinishedAgent(Closed);

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

    /// Reserves the ids of sub-agents that the session had before it was resumed.
    pub(super) fn after(&mut self, agents: &[AgentId]) {
        for agent in agents {
            let Some((parent, number)) = agent.as_str().rsplit_once('.') else { continue };
            let last = self.numbers.entry(AgentId::from(parent)).or_default();
            *last = (*last).max(number.parse().unwrap_or(0));
        }
    }

    /// Waits for the end of a sub-agent's worker, and returns the sub-agent. Pends while none is ending. Cancel safe.
    pub(super) async fn next(&mut self) -> Closed {
        match self.ending.next().await {
            Some(closed) => closed,
            None => std::future::pending().await,
        }
    }

    pub(super) fn planning(&self, ceiling: StandingRights) -> Option<Planning> {
        self.opener.as_ref()?.planning(ceiling)
    }

    pub(super) fn take_back_from_waiting(&mut self, change: &Change) {
        self.waiting.iter_mut().for_each(|waiting| waiting.take_back(change));
    }

    fn has_living_below(&self, agent: &AgentId) -> bool {
        self.living.keys().any(|living| living.is_below(agent))
    }

    /// Gives a sub-agent its id. `call` is the parent's call that asked for it; `None` if the user asked.
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

    pub(super) fn permit(
        &self,
        wanted: WantedAgent,
        started_this_turn: u32,
    ) -> Result<Permitted, NotStartedAgent> {
        wanted.permit(self.opener.is_some(), &self.limits, started_this_turn)
    }

    /// Lets a sub-agent start if its level has a free slot. Queues it otherwise.
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

    pub(super) fn next_placed(&mut self) -> Option<Placed> {
        let at = self.waiting.iter().position(|waiting| self.free_places(waiting.id()) > 0)?;
        let permitted = self.waiting.remove(at)?;
        permitted.place(1).ok()
    }

    pub(super) fn open(&mut self, placed: Placed, parent: Option<&Agent>) -> Result<Opened, NotStartedAgent> {
        placed.bound(parent)?.open(self.opener.as_deref_mut(), parent)
    }

    pub(super) fn insert(&mut self, id: AgentId, child: Child) {
        self.living.insert(id, child);
    }

    pub(super) fn remove(&mut self, id: &AgentId) -> Option<Child> {
        self.living.remove(id)
    }

    pub(super) fn is_living(&self, id: &AgentId) -> bool {
        self.living.contains_key(id)
    }

    /// Returns the living sub-agents, each after its parent.
    pub(super) fn living_from_above(&self) -> Vec<AgentId> {
        let by_level: BTreeSet<_> = self.living.keys().map(|id| (id.level(), id.clone())).collect();
        by_level.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn child(&self, id: &AgentId) -> Option<&Child> {
        self.living.get(id)
    }

    /// Returns the living sub-agent that this call started. Removes the sub-agent of the call if it waits for a slot.
    pub(super) fn end(&mut self, parent: &AgentId, call: CallId) -> Option<AgentId> {
        let is_of_call = |child: &Child| child.parent == *parent && child.call == Some(call);
        self.waiting.retain(|waiting| !is_of_call(waiting.child()));
        self.living.iter().find(|(_, child)| is_of_call(child)).map(|(id, _)| id.clone())
    }

    /// Begins to end a sub-agent, and removes waiting ones below it. Returns the calls that started the living ones.
    pub(super) fn close(&mut self, run: AgentRun) -> Vec<CallId> {
        self.waiting.retain(|waiting| waiting.child().parent != *run.id());
        let below = self.living.values().filter(|child| child.parent == *run.id());
        let calls = below.filter_map(|child| child.call).collect();
        self.ending.push(Box::pin(close(run)));
        calls
    }

    pub(super) fn any_ends(&self) -> bool {
        !self.ending.is_empty()
    }

    pub(super) fn take_closed(&mut self, closed: Closed) {
        self.closed.push(closed);
    }

    /// Returns sub-agents whose workers have ended and whose parents are not informed yet.
    pub(super) fn closed(&self) -> impl Iterator<Item = &AgentId> {
        self.closed.iter().map(|closed| closed.run.id())
    }

    /// Returns a sub-agent that has ended with all below it. `is_open` is true for one whose changed files are unknown.
    pub(super) fn next_finished(
        &mut self,
        mut is_open: impl FnMut(&AgentId) -> bool,
    ) -> Option<FinishedAgent> {
        let is_alone = |id: &AgentId| !self.has_living_below(id);
        let is_next = |closed: &Closed| is_alone(closed.run.id()) && !is_open(closed.run.id());
        let at = self.closed.iter().position(is_next)?;
        Some(FinishedAgent(self.closed.swap_remove(at)))
    }

    /// Returns the number of free slots at this sub-agent's level. Levels have separate slots: waiting parents keep
    /// theirs.
    fn free_places(&self, id: &AgentId) -> usize {
        let at_work =
            self.living.iter().filter(|(living, child)| living.level() == id.level() && child.call.is_some());
        (self.limits.at_once as usize).saturating_sub(at_work.count())
    }

    /// Withdraws access from the grants of all sub-agents. True if a grant changed.
    pub(super) fn withdraw(&mut self, action: &AgentAction) -> bool {
        let without = |grant: &Grant| match action {
            AgentAction::SetRights { change: RightsChange::RemoveWrite { path } } => {
                spawn::narrowed_grant(grant, &Network::On, Some(path))
            }
            AgentAction::SetRights { change } => change
                .network_bound()
                .map_or_else(|| grant.clone(), |bound| spawn::narrowed_grant(grant, bound, None)),
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
