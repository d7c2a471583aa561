//! Agents of a session: their runs, and the tree that they form. An input can cause starts, ends and withdrawals of
//! access in the tree; the session carries these out before the next input.

use agent::core::{ContextItem, Input, NewAgent, TreeLimits, account_of};
use gate::Change;
use gate::judgement::spawn;
use ipc::id::{AgentId, CallId};
use protocol::event::{EventKind, NoticeCode, SubAgentResult};
use protocol::frontend::{AgentAction, Op};

use super::super::account::empty_account;
use super::super::actions::resolved;
use super::super::run::Request;
use super::super::tree_order::TreeOrder;
use super::super::{AgentRun, OpensAgents, SessionError, Shared};
use super::newcomer::{NotStartedAgent, Placed};
use super::planners::planner;
use super::runs::AgentRuns;
use super::tree::{AgentTree, Child, Closed, FinishedAgent};

pub(super) struct SessionAgents {
    runs: AgentRuns,
    tree: AgentTree,
}

enum Unsettled {
    Order(TreeOrder),
    RightsChanged,
    Finished(FinishedAgent),
    Placed(Placed),
    TurnFreed,
    BudgetFreed,
}

impl SessionAgents {
    pub(super) fn new(first: AgentRun) -> Self {
        Self { runs: AgentRuns::new(first), tree: AgentTree::new(None, TreeLimits::default()) }
    }

    /// Allows the agents to have sub-agents.
    #[must_use]
    pub(super) fn with_sub_agents(self, opener: Box<dyn OpensAgents>, limits: TreeLimits) -> Self {
        Self { tree: AgentTree::new(Some(opener), limits), ..self }
    }

    /// Reserves the ids of these agents, which the session had before it was resumed.
    pub(super) fn after(&mut self, agents: &[AgentId]) {
        self.tree.after(agents);
    }

    pub(super) const fn runs(&self) -> &AgentRuns {
        &self.runs
    }

    pub(super) const fn runs_mut(&mut self) -> &mut AgentRuns {
        &mut self.runs
    }

    /// Returns the runs and the tree as separate references, because the session waits for both.
    pub(super) const fn parts_mut(&mut self) -> (&mut AgentRuns, &mut AgentTree) {
        (&mut self.runs, &mut self.tree)
    }

    /// Starts a planner for a task that the user wrote, or tells the user why none can start.
    pub(super) fn start_planner(&mut self, shared: &mut Shared, text: String) -> Result<(), SessionError> {
        match planner(text, &self.runs, |ceiling| self.tree.planning(ceiling)) {
            Ok(agent) => {
                // If no agent is busy, the planner begins a turn, with the limits of one.
                if !self.runs.any_is_busy() {
                    shared.begin_turn(&AgentId::root());
                }
                self.start_beside(shared, AgentId::root(), agent)
            }
            Err(why) => {
                let message = format!("no planner was started: {why}");
                self.runs.notice(shared, NoticeCode::PlanRefused, &message)
            }
        }
    }

    /// Removes access from the grants of all sub-agents if this action of the user withdraws it.
    pub(super) fn withdraw(&mut self, shared: &mut Shared, action: &AgentAction) {
        shared.rights_changed |= self.tree.withdraw(action);
    }

    /// If this action of the user withdraws access, withdraws it from all planners and from executors of plans.
    pub(super) fn take_back_from_plans(
        &mut self,
        shared: &mut Shared,
        action: &AgentAction,
    ) -> Result<(), SessionError> {
        let Some(first) = self.runs.first() else { return Ok(()) };
        let project = first.worker().confinement().project.as_path().to_owned();
        let change = match resolved(&project, action.clone()) {
            Ok(AgentAction::SetRights { change }) => Change::Rights(change),
            Ok(AgentAction::SetMode { mode }) => Change::Mode(mode),
            _ => return Ok(()),
        };
        self.tree.take_back_from_waiting(&change);
        self.runs.for_each(shared, |run, shared| run.take(shared, Request::TakeBack(change.clone())))
    }

    /// Limits the access of each sub-agent to its parent's present access plus its grant, from the top down.
    fn narrow_all(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        for id in self.tree.living_from_above() {
            let Some(child) = self.tree.child(&id) else { continue };
            let Some(parent) = self.runs.find(&child.parent).map(AgentRun::agent) else { continue };
            let Some(at) = self.runs.position(&id) else { continue };
            let Some(run) = self.runs.get(at) else { continue };
            let rights = spawn::narrowed(run.agent().host_standing(), parent.rights(), &child.grant);
            self.runs.guarded(shared, at, |run, shared| run.feed(shared, Input::Narrowed { rights }))?;
        }
        Ok(())
    }

    /// Delays the next worker of an agent while a sub-agent below it has its old worker, which is being replaced.
    fn hold_back_replacements(&mut self) {
        let ends = |id: &&AgentId| self.runs.find(id).is_none_or(|run| run.worker().is_being_replaced());
        let living = self.tree.living_from_above();
        let wider: Vec<_> = living.iter().filter(ends).collect();
        for run in self.runs.iter_mut() {
            let waits = wider.iter().any(|below| below.is_below(run.id()));
            run.worker_mut().wait_for_subtree(waits);
        }
    }

    /// Carries out the orders that the last input caused in the tree, until there are no further orders.
    pub(super) fn settle(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        self.take_out_ended(shared);
        while let Some(unsettled) = self.next_unsettled(shared) {
            self.settle_one(shared, unsettled)?;
            self.take_out_ended(shared);
        }
        self.hold_back_replacements();
        Ok(())
    }

    fn next_unsettled(&mut self, shared: &mut Shared) -> Option<Unsettled> {
        if let Some(order) = shared.orders.pop_front() {
            return Some(Unsettled::Order(order));
        }
        if std::mem::take(&mut shared.rights_changed) {
            return Some(Unsettled::RightsChanged);
        }
        if let Some(finished) = self.next_finished(shared) {
            return Some(Unsettled::Finished(finished));
        }
        if let Some(placed) = self.tree.next_placed() {
            return Some(Unsettled::Placed(placed));
        }
        if shared.turns.take_freed() {
            return Some(Unsettled::TurnFreed);
        }
        std::mem::take(&mut shared.budget_freed).then_some(Unsettled::BudgetFreed)
    }

    fn settle_one(&mut self, shared: &mut Shared, unsettled: Unsettled) -> Result<(), SessionError> {
        match unsettled {
            Unsettled::Order(TreeOrder::Start { parent, call, agent }) => {
                self.start_for_call(shared, parent, call, agent)
            }
            Unsettled::Order(TreeOrder::End { parent, call }) => {
                self.tree.end(&parent, call).map_or(Ok(()), |id| self.end_agent(shared, &id))
            }
            Unsettled::RightsChanged => self.narrow_all(shared),
            Unsettled::Finished(finished) => self.report(shared, finished),
            Unsettled::Placed(placed) => self.start(shared, placed),
            Unsettled::TurnFreed => self.runs.for_each(shared, AgentRun::release),
            Unsettled::BudgetFreed => {
                self.runs.for_each(shared, |run, shared| run.take(shared, Request::AskForBudget))
            }
        }
    }

    fn start_for_call(
        &mut self,
        shared: &mut Shared,
        parent: AgentId,
        call: CallId,
        agent: Box<NewAgent>,
    ) -> Result<(), SessionError> {
        let wanted = self.tree.number(parent, Some(call), agent);
        let permitted = match self.tree.permit(wanted, shared.started_this_turn) {
            Ok(permitted) => permitted,
            Err(not_started) => return self.tell_not_started(shared, not_started),
        };
        shared.started_this_turn = shared.started_this_turn.saturating_add(1);
        self.tree.place(permitted).map_or(Ok(()), |placed| self.start(shared, placed))
    }

    /// Starts a sub-agent that no call of its parent asked for.
    fn start_beside(
        &mut self,
        shared: &mut Shared,
        parent: AgentId,
        agent: Box<NewAgent>,
    ) -> Result<(), SessionError> {
        let wanted = self.tree.number(parent, None, agent);
        match self.tree.permit(wanted, 0) {
            Ok(permitted) => self.start(shared, permitted.beside()),
            Err(not_started) => self.tell_not_started(shared, not_started),
        }
    }

    fn start(&mut self, shared: &mut Shared, placed: Placed) -> Result<(), SessionError> {
        let parent = self.runs.find(placed.parent()).map(AgentRun::agent);
        let opened = match self.tree.open(placed, parent) {
            Ok(opened) => opened,
            Err(not_started) => return self.tell_not_started(shared, not_started),
        };
        let announced = opened.announce(|parent, spawned| self.runs.record_for(shared, parent, spawned))?;
        let (run, child, task) = announced.begin(shared)?;
        self.tree.insert(run.id().clone(), child);
        let at = self.runs.push(run);
        self.runs.guarded(shared, at, |run, shared| run.feed(shared, Input::Op(task)))
    }

    fn tell_not_started(
        &mut self,
        shared: &mut Shared,
        not_started: NotStartedAgent,
    ) -> Result<(), SessionError> {
        let NotStartedAgent { id, child, status, why } = not_started;
        let report = empty_account(id, child.call, status, Some(why));
        self.tell_parent(shared, &child, report)
    }

    /// Ends a sub-agent. The core of its run then ends the sub-agents below it.
    fn end_agent(&mut self, shared: &mut Shared, id: &AgentId) -> Result<(), SessionError> {
        let Some(at) = self.runs.position(id) else { return Ok(()) };
        self.runs.guarded(shared, at, |run, shared| {
            run.feed(shared, Input::Op(Op::Act(AgentAction::Interrupt)))?;
            // A sub-agent that is starting may have nothing to interrupt.
            if run.is_over() { Ok(()) } else { run.feed(shared, Input::Op(Op::Act(AgentAction::Quit))) }
        })
    }

    /// Removes sub-agents whose turn is over and whose effects have ended, and begins to end their workers.
    fn take_out_ended(&mut self, shared: &mut Shared) {
        let Self { runs, tree } = self;
        let is_ended = |tree: &AgentTree, run: &AgentRun| {
            tree.is_living(run.id()) && run.is_over() && !run.carries_out()
        };
        while let Some(run) = runs.take_if(|run| is_ended(tree, run)) {
            shared.rest(run.id());
            let parent = run.id().clone();
            for call in tree.close(run) {
                shared.orders.push_back(TreeOrder::End { parent: parent.clone(), call });
            }
        }
    }

    fn next_finished(&mut self, shared: &mut Shared) -> Option<FinishedAgent> {
        let written = &mut shared.written;
        self.tree.next_finished(|id| written.as_mut().is_some_and(|files| files.is_open(id)))
    }

    fn report(&mut self, shared: &mut Shared, finished: FinishedAgent) -> Result<(), SessionError> {
        let (mut run, last) = finished.into_parts();
        run.take_last(shared, last)?;
        let Some(child) = self.tree.remove(run.id()) else { return Ok(()) };
        let written = shared.written.as_mut().map(|files| files.take(run.id())).unwrap_or_default();
        let report = run.into_report(child.call, child.began, written);
        self.tell_parent(shared, &child, report)
    }

    fn tell_parent(
        &mut self,
        shared: &mut Shared,
        child: &Child,
        report: SubAgentResult,
    ) -> Result<(), SessionError> {
        self.runs.record_for(shared, &child.parent, EventKind::SubAgentResult(report.clone()))?;
        let Some(at) = self.runs.position(&child.parent) else { return Ok(()) };
        let input = match child.call {
            Some(call) => Input::AgentFinished { call, report: Box::new(report) },
            // If the user started it, the report is context for the user's next message.
            None => {
                Input::Context(vec![ContextItem { source: "plan".to_owned(), text: account_of(&report) }])
            }
        };
        self.runs.guarded(shared, at, |run, shared| run.feed(shared, input))
    }

    /// Ends all sub-agents at the end of the session, and reports them to their parents.
    pub(super) async fn end_subtree(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let living = self.tree.living_from_above();
        for run in self.runs.iter_mut().filter(|run| living.contains(run.id())) {
            run.end_one_shots(shared).await?;
        }
        self.take_out_ended(shared);
        while self.tree.any_ends() {
            let closed = self.tree.next().await;
            self.on_closed(shared, closed);
        }
        if let Some(files) = &mut shared.written {
            let closed: Vec<_> = self.tree.closed().cloned().collect();
            for agent in closed {
                files.settle(&agent).await;
            }
        }
        while let Some(finished) = self.next_finished(shared) {
            self.report(shared, finished)?;
        }
        Ok(())
    }

    pub(super) fn on_closed(&mut self, shared: &mut Shared, closed: Closed) {
        shared.turns.give_back(closed.id());
        self.tree.take_closed(closed);
    }
}
