//! The tree of a session's agents: sub-agents start, lose rights with their parents, and end with everything below them.
//!
//! What an agent's core wants of the tree becomes an order ([`TreeOrder`]), which the session carries out between two inputs: so
//! the agents can be added and taken out while none of them is at work.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent::core::{ContextItem, Input, NewAgent, Planning, Purpose, TreeLimits, account_of};
use boundary::monitor::WorkerEvent;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use gate::modes::{Position, permits};
use gate::{Change, StandingRights, at_start, narrowed, narrowed_grant};
use ipc::id::{AgentId, CallId, Generation};
use ipc::rights::{Grant, Network, RightsChange};
use protocol::event::{EventKind, SubAgentResult, SubAgentSpawned, SubAgentStatus};
use protocol::frontend::{AgentAction, Op};
use tokio::time::Instant;

use super::account::empty_account;
use super::calls::take_back;
use super::run::Request;
use super::tree_order::TreeOrder;
use super::{AgentRun, Session, SessionError};

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
    waiting: VecDeque<(AgentId, Child, Box<NewAgent>)>,
    ending: FuturesUnordered<BoxFuture<'static, Closed>>,
    /// Sub-agents without a process, until everything below them is gone too.
    closed: Vec<Closed>,
    /// Number of sub-agents that each agent has had.
    numbers: BTreeMap<AgentId, u32>,
}

struct Child {
    parent: AgentId,
    /// The call of its parent that asked for it; none where the user did.
    call: Option<CallId>,
    /// The part of its rights that its parent does not have, as far as the user has not taken it back.
    grant: Grant,
    began: Instant,
}

/// A sub-agent whose worker is gone, and that worker's last words.
pub(super) struct Closed {
    run: Box<AgentRun>,
    last: Vec<(Generation, WorkerEvent)>,
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
        self.waiting.iter_mut().for_each(|(_, _, agent)| take_back(agent, change));
    }

    fn has_living_below(&self, agent: &AgentId) -> bool {
        self.living.keys().any(|living| living.is_below(agent))
    }

    fn number(&mut self, parent: &AgentId) -> AgentId {
        let number = self.numbers.entry(parent.clone()).or_default();
        *number = number.saturating_add(1);
        AgentId(format!("{parent}.{number}"))
    }

    /// The reason why a sub-agent is not started at all.
    fn refusal(&self, id: &AgentId, started_this_turn: u32) -> Option<String> {
        let TreeLimits { depth, per_turn, .. } = self.limits;
        if self.opener.is_none() {
            return Some("this session cannot start sub-agents".to_owned());
        }
        if id.level() > depth as usize {
            return Some(format!("sub-agents can be nested only to level {depth}"));
        }
        let spent = started_this_turn >= per_turn;
        spent.then(|| format!("{per_turn} sub-agents were started in this turn, which is the limit"))
    }

    /// Levels are counted apart: who waits for sub-agents of its own takes no place from them.
    fn has_place(&self, id: &AgentId) -> bool {
        let at_work =
            self.living.iter().filter(|(living, child)| living.level() == id.level() && child.call.is_some());
        at_work.count() < self.limits.at_once as usize
    }

    /// Takes back what an action of the user's withdraws from every sub-agent; true if anything of a grant went.
    fn withdraw(&mut self, action: &AgentAction) -> bool {
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
        let grants = self.living.values_mut().chain(self.waiting.iter_mut().map(|(_, child, _)| child));
        grants.fold(false, |changed, child| {
            let left = without(&child.grant);
            let less = left != child.grant;
            child.grant = left;
            changed || less
        })
    }
}

impl Session {
    /// Carries out what the last input left to do in the tree, until nothing is left.
    pub(super) fn settle(&mut self) -> Result<(), SessionError> {
        loop {
            self.take_out_ended();
            if let Some(order) = self.shared.orders.pop_front() {
                self.carry_out(order)?;
            } else if std::mem::take(&mut self.shared.rights_changed) {
                self.narrow_all()?;
            } else if let Some(closed) = self.next_closed() {
                self.report(closed)?;
            } else if let Some((id, child, agent)) = self.next_waiting() {
                self.start(id, child, agent)?;
            } else if self.shared.turns.take_freed() {
                self.for_each(AgentRun::release)?;
            } else if std::mem::take(&mut self.shared.budget_freed) {
                self.for_each(|run, shared| run.take(shared, Request::AskForBudget))?;
            } else {
                break;
            }
        }
        self.hold_back_replacements();
        Ok(())
    }

    fn carry_out(&mut self, order: TreeOrder) -> Result<(), SessionError> {
        match order {
            TreeOrder::Start { parent, call, agent } => {
                let id = self.tree.number(&parent);
                let grant = agent.grant.clone();
                let child = Child { parent, call: Some(call), grant, began: Instant::now() };
                if let Some(why) = self.tree.refusal(&id, self.shared.started_this_turn) {
                    return self.not_started(id, child, why);
                }
                self.shared.started_this_turn = self.shared.started_this_turn.saturating_add(1);
                if self.tree.has_place(&id) {
                    return self.start(id, child, agent);
                }
                self.tree.waiting.push_back((id, child, agent));
                Ok(())
            }
            TreeOrder::End { parent, call } => {
                self.tree.waiting.retain(|(_, child, _)| child.parent != parent || child.call != Some(call));
                let of_call =
                    |(_, child): &(&AgentId, &Child)| child.parent == parent && child.call == Some(call);
                let id = self.tree.living.iter().find(of_call).map(|(id, _)| id.clone());
                id.map_or(Ok(()), |id| self.end_agent(&id))
            }
        }
    }

    /// Starts a sub-agent that no call asked for.
    pub(super) fn start_beside(&mut self, parent: AgentId, agent: Box<NewAgent>) -> Result<(), SessionError> {
        let id = self.tree.number(&parent);
        let child = Child { parent, call: None, grant: agent.grant.clone(), began: Instant::now() };
        if let Some(why) = self.tree.refusal(&id, 0) {
            return self.not_started(id, child, why);
        }
        self.start(id, child, agent)
    }

    /// Interrupts a sub-agent; its core does the same with those below it.
    fn end_agent(&mut self, id: &AgentId) -> Result<(), SessionError> {
        let Some(at) = self.runs.iter().position(|run| run.id() == id) else { return Ok(()) };
        self.guarded(at, |run, shared| {
            run.feed(shared, Input::Op(Op::Act(AgentAction::Interrupt)))?;
            // One that is just starting may have nothing yet that could be interrupted.
            if run.is_over() { Ok(()) } else { run.feed(shared, Input::Op(Op::Act(AgentAction::Quit))) }
        })
    }

    fn start(&mut self, id: AgentId, child: Child, agent: Box<NewAgent>) -> Result<(), SessionError> {
        // Between its approval and now the user may have taken back what its plan was given.
        let planner = self.runs.iter().find(|run| *run.id() == child.parent);
        if let (Purpose::Executor(_), Some(planner)) = (&agent.purpose, planner)
            && let Some(planning) = planner.agent().planning()
            && let Err(why) = planning.ceiling.still_allows_plan(&agent.rights)
        {
            return self.not_started(id, child, format!("the plan is not executed: {why}"));
        }
        let agent = self.within_its_parent(&id, &child, agent);
        let opened = match &mut self.tree.opener {
            Some(opener) => opener.open(&id, &agent),
            None => Err("this session cannot start sub-agents".to_owned().into()),
        };
        let OpenedAgent { mut run, model, rights_digest } = match opened {
            Ok(opened) => opened,
            Err(NotOpened::Failed(why)) => return self.not_started(id, child, why),
            Err(NotOpened::Denied(why)) => {
                return self.not_started_as(SubAgentStatus::Denied, id, child, why);
            }
        };
        let NewAgent { spawn, rights, grant, purpose } = *agent;
        let parent = self.runs.iter().find(|run| *run.id() == child.parent);
        let differs = parent.is_none_or(|parent| parent.agent().activity() != purpose.activity());
        let caches = parent.and_then(|parent| parent.agent().host_standing().caches.clone());
        let spawned = SubAgentSpawned {
            agent: id.clone(),
            call: child.call,
            activity: differs.then(|| purpose.activity()),
            plan: match &purpose {
                Purpose::Executor(execution) => Some(execution.digest().to_owned()),
                Purpose::Task(_) | Purpose::Planner(_) => None,
            },
            finished: match &purpose {
                Purpose::Executor(execution) => execution.finished(),
                Purpose::Task(_) | Purpose::Planner(_) => 0,
            },
            task: spawn.task.clone(),
            role: spawn.role.clone(),
            model,
            caches: caches.filter(|caches| rights.write.contains(caches)),
            write: rights.write,
            net: rights.net,
            reach: rights.reach,
            sockets: rights.sockets,
            servers: spawn.servers.into_iter().map(|server| server.name).collect(),
            rights_digest,
            grant: (!grant.is_empty()).then_some(grant),
            max_steps: spawn.max_steps,
        };
        self.record_for(&child.parent, EventKind::SubAgentSpawned(spawned))?;
        run.begin_below(&mut self.shared)?;
        self.tree.living.insert(id, child);
        self.runs.push(run);
        let task = Op::Act(AgentAction::Prompt { text: spawn.task, images: Vec::new() });
        self.guarded(self.runs.len() - 1, |run, shared| run.feed(shared, Input::Op(task)))
    }

    /// The rights that are left of what was asked for: its parent's may have become less while it waited.
    fn within_its_parent(&self, id: &AgentId, child: &Child, agent: Box<NewAgent>) -> Box<NewAgent> {
        let parent = self.runs.iter().find(|run| *run.id() == child.parent);
        let standing = parent.map(|parent| parent.agent().host_standing());
        let rights = standing
            .map_or_else(Default::default, |standing| at_start(&agent.rights, standing, &child.grant));
        tracing::debug!(%id, "a sub-agent starts");
        Box::new(NewAgent { rights, grant: child.grant.clone(), ..*agent })
    }

    fn not_started(&mut self, id: AgentId, child: Child, why: String) -> Result<(), SessionError> {
        self.not_started_as(SubAgentStatus::Crashed, id, child, why)
    }

    fn not_started_as(
        &mut self,
        status: SubAgentStatus,
        id: AgentId,
        child: Child,
        why: String,
    ) -> Result<(), SessionError> {
        let report = empty_account(id, child.call, status, Some(why));
        self.tell_parent(&child, report)
    }

    /// Sub-agents whose turn is over have no worker any longer than it takes to end one, and what is carried out for
    /// them.
    fn take_out_ended(&mut self) {
        while let Some(at) = self
            .runs
            .iter()
            .position(|run| self.tree.living.contains_key(run.id()) && run.is_over() && !run.carries_out())
        {
            let run = self.runs.remove(at);
            self.shared.rest(run.id());
            for below in self.tree.living.iter().filter(|(_, child)| child.parent == *run.id()) {
                let Some(call) = below.1.call else { continue };
                let parent = run.id().clone();
                self.shared.orders.push_back(TreeOrder::End { parent, call });
            }
            self.tree.waiting.retain(|(_, child, _)| child.parent != *run.id());
            self.tree.ending.push(Box::pin(close(run)));
        }
    }

    pub(super) fn on_closed(&mut self, closed: Closed) {
        self.shared.turns.give_back(closed.run.id());
        self.tree.closed.push(closed);
    }

    /// A parent hears of a sub-agent's end when nothing below that one lives.
    fn next_closed(&mut self) -> Option<Closed> {
        let is_alone = |closed: &Closed| !self.tree.has_living_below(closed.run.id());
        let written = &mut self.shared.written;
        let mut is_open =
            |closed: &Closed| written.as_mut().is_some_and(|files| files.is_open(closed.run.id()));
        let at = self.tree.closed.iter().position(|closed| is_alone(closed) && !is_open(closed))?;
        Some(self.tree.closed.swap_remove(at))
    }

    fn report(&mut self, closed: Closed) -> Result<(), SessionError> {
        let Closed { mut run, last } = closed;
        run.take_last(&mut self.shared, last)?;
        let Some(child) = self.tree.living.remove(run.id()) else { return Ok(()) };
        let written = self.shared.written.as_mut().map(|files| files.take(run.id())).unwrap_or_default();
        let report = run.into_report(child.call, child.began, written);
        self.tell_parent(&child, report)
    }

    fn tell_parent(&mut self, child: &Child, report: SubAgentResult) -> Result<(), SessionError> {
        self.record_for(&child.parent, EventKind::SubAgentResult(report.clone()))?;
        let Some(at) = self.runs.iter().position(|run| *run.id() == child.parent) else { return Ok(()) };
        let input = match child.call {
            Some(call) => Input::AgentFinished { call, report: Box::new(report) },
            // The user started it: its parent hears of it with the user's next message.
            None => {
                Input::Context(vec![ContextItem { source: "plan".to_owned(), text: account_of(&report) }])
            }
        };
        self.guarded(at, |run, shared| run.feed(shared, input))
    }

    fn next_waiting(&mut self) -> Option<(AgentId, Child, Box<NewAgent>)> {
        let at = self.tree.waiting.iter().position(|(id, ..)| self.tree.has_place(id))?;
        self.tree.waiting.remove(at)
    }

    /// An action of the user's that takes rights away reaches every agent below, whatever it was given.
    pub(super) fn withdraw(&mut self, action: &AgentAction) {
        self.shared.rights_changed |= self.tree.withdraw(action);
    }

    /// Holds every sub-agent to what its parent has now, those above first.
    fn narrow_all(&mut self) -> Result<(), SessionError> {
        let ids: BTreeSet<(usize, AgentId)> =
            self.tree.living.keys().map(|id| (id.level(), id.clone())).collect();
        for (_, id) in ids {
            let Some(child) = self.tree.living.get(&id) else { continue };
            let parent = self.runs.iter().find(|run| *run.id() == child.parent);
            let Some(parent) = parent.map(|run| run.agent().rights().clone()) else { continue };
            let Some(at) = self.runs.iter().position(|run| *run.id() == id) else { continue };
            let rights = narrowed(self.runs[at].agent().host_standing(), &parent, &child.grant);
            self.guarded(at, |run, shared| run.feed(shared, Input::Narrowed { rights }))?;
        }
        Ok(())
    }

    /// A worker with new rights does not begin before every wider one below its agent is gone.
    fn hold_back_replacements(&mut self) {
        let ends = |id: &&AgentId| {
            self.runs.iter().find(|run| run.id() == *id).is_none_or(|run| run.worker().is_being_replaced())
        };
        let wider: Vec<_> = self.tree.living.keys().filter(ends).cloned().collect();
        for run in &mut self.runs {
            let waits = wider.iter().any(|below| below.is_below(run.id()));
            run.worker_mut().wait_for_subtree(waits);
        }
    }

    /// Waits for the sub-agents that are ending, when all agents of the top level are over.
    pub(super) async fn see_subtree_off(&mut self) -> Result<(), SessionError> {
        let shared = &mut self.shared;
        for run in self.runs.iter_mut().filter(|run| self.tree.living.contains_key(run.id())) {
            run.end_one_shots(shared).await?;
        }
        self.take_out_ended();
        while !self.tree.ending.is_empty() {
            let closed = self.tree.next().await;
            self.on_closed(closed);
        }
        if let Some(files) = &mut self.shared.written {
            let ended: Vec<_> = self.tree.closed.iter().map(|closed| closed.run.id().clone()).collect();
            for agent in ended {
                files.settle(&agent).await;
            }
        }
        while let Some(closed) = self.next_closed() {
            self.report(closed)?;
        }
        Ok(())
    }
}

async fn close(mut run: AgentRun) -> Closed {
    let last = run.wind_up().await;
    Closed { run: Box::new(run), last }
}
