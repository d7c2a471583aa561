//! Work that an input causes in the tree of agents: starts, ends, and withdrawal of access below.

use agent::core::{Agent, ContextItem, Input, NewAgent, account_of};
use gate::narrowed;
use ipc::id::{AgentId, CallId};
use protocol::event::{EventKind, SubAgentResult};
use protocol::frontend::{AgentAction, Op};

use super::super::account::empty_account;
use super::super::run::Request;
use super::super::tree_order::TreeOrder;
use super::super::{AgentRun, SessionError};
use super::Session;
use super::newcomer::{NotStartedAgent, Placed};
use super::tree::{AgentTree, Child, Closed, FinishedAgent};

enum Unsettled {
    Order(TreeOrder),
    RightsChanged,
    Finished(FinishedAgent),
    Placed(Placed),
    TurnFreed,
    BudgetFreed,
}

impl Session {
    /// Carries out the work that the last input caused in the tree, until none is left.
    pub(super) fn settle(&mut self) -> Result<(), SessionError> {
        self.take_out_ended();
        while let Some(unsettled) = self.next_unsettled() {
            self.settle_one(unsettled)?;
            self.take_out_ended();
        }
        self.hold_back_replacements();
        Ok(())
    }

    fn next_unsettled(&mut self) -> Option<Unsettled> {
        if let Some(order) = self.shared.orders.pop_front() {
            return Some(Unsettled::Order(order));
        }
        if std::mem::take(&mut self.shared.rights_changed) {
            return Some(Unsettled::RightsChanged);
        }
        if let Some(finished) = self.next_finished() {
            return Some(Unsettled::Finished(finished));
        }
        if let Some(placed) = self.tree.next_placed() {
            return Some(Unsettled::Placed(placed));
        }
        if self.shared.turns.take_freed() {
            return Some(Unsettled::TurnFreed);
        }
        std::mem::take(&mut self.shared.budget_freed).then_some(Unsettled::BudgetFreed)
    }

    fn settle_one(&mut self, unsettled: Unsettled) -> Result<(), SessionError> {
        match unsettled {
            Unsettled::Order(TreeOrder::Start { parent, call, agent }) => {
                self.start_for_call(parent, call, agent)
            }
            Unsettled::Order(TreeOrder::End { parent, call }) => {
                self.tree.end(&parent, call).map_or(Ok(()), |id| self.end_agent(&id))
            }
            Unsettled::RightsChanged => self.narrow_all(),
            Unsettled::Finished(finished) => self.report(finished),
            Unsettled::Placed(placed) => self.start(placed),
            Unsettled::TurnFreed => self.for_each(AgentRun::release),
            Unsettled::BudgetFreed => self.for_each(|run, shared| run.take(shared, Request::AskForBudget)),
        }
    }

    fn start_for_call(
        &mut self,
        parent: AgentId,
        call: CallId,
        agent: Box<NewAgent>,
    ) -> Result<(), SessionError> {
        let wanted = self.tree.number(parent, Some(call), agent);
        let permitted = match self.tree.permit(wanted, self.shared.started_this_turn) {
            Ok(permitted) => permitted,
            Err(not_started) => return self.tell_not_started(not_started),
        };
        self.shared.started_this_turn = self.shared.started_this_turn.saturating_add(1);
        self.tree.place(permitted).map_or(Ok(()), |placed| self.start(placed))
    }

    /// Starts a sub-agent that no call asked for.
    pub(super) fn start_beside(&mut self, parent: AgentId, agent: Box<NewAgent>) -> Result<(), SessionError> {
        let wanted = self.tree.number(parent, None, agent);
        match self.tree.permit(wanted, 0) {
            Ok(permitted) => self.start(permitted.beside()),
            Err(not_started) => self.tell_not_started(not_started),
        }
    }

    fn start(&mut self, placed: Placed) -> Result<(), SessionError> {
        let parent = agent_of(&self.runs, placed.parent());
        let opened = match self.tree.open(placed, parent) {
            Ok(opened) => opened,
            Err(not_started) => return self.tell_not_started(not_started),
        };
        let announced = opened.announce(|parent, spawned| self.record_for(parent, spawned))?;
        let (run, child, task) = announced.begin(&mut self.shared)?;
        self.tree.insert(run.id().clone(), child);
        self.runs.push(run);
        self.guarded(self.runs.len() - 1, |run, shared| run.feed(shared, Input::Op(task)))
    }

    fn tell_not_started(&mut self, not_started: NotStartedAgent) -> Result<(), SessionError> {
        let NotStartedAgent { id, child, status, why } = not_started;
        let report = empty_account(id, child.call, status, Some(why));
        self.tell_parent(&child, report)
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

    /// Removes sub-agents whose turn is over and whose effects have ended, and begins to end their workers.
    fn take_out_ended(&mut self) {
        let is_ended = |tree: &AgentTree, run: &AgentRun| {
            tree.is_living(run.id()) && run.is_over() && !run.carries_out()
        };
        while let Some(at) = self.runs.iter().position(|run| is_ended(&self.tree, run)) {
            let run = self.runs.remove(at);
            self.shared.rest(run.id());
            let parent = run.id().clone();
            for call in self.tree.close(run) {
                self.shared.orders.push_back(TreeOrder::End { parent: parent.clone(), call });
            }
        }
    }

    fn next_finished(&mut self) -> Option<FinishedAgent> {
        let written = &mut self.shared.written;
        self.tree.next_finished(|id| written.as_mut().is_some_and(|files| files.is_open(id)))
    }

    fn report(&mut self, finished: FinishedAgent) -> Result<(), SessionError> {
        let (mut run, last) = finished.into_parts();
        run.take_last(&mut self.shared, last)?;
        let Some(child) = self.tree.remove(run.id()) else { return Ok(()) };
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

    /// Withdraws access from every sub-agent, whatever its grant, when the user withdraws it from any agent.
    pub(super) fn withdraw(&mut self, action: &AgentAction) {
        self.shared.rights_changed |= self.tree.withdraw(action);
    }

    /// Limits every sub-agent to its parent's present access, from the top down.
    fn narrow_all(&mut self) -> Result<(), SessionError> {
        for id in self.tree.living_from_above() {
            let Some(child) = self.tree.child(&id) else { continue };
            let Some(parent) = agent_of(&self.runs, &child.parent) else { continue };
            let Some(at) = self.runs.iter().position(|run| *run.id() == id) else { continue };
            let rights = narrowed(self.runs[at].agent().host_standing(), parent.rights(), &child.grant);
            self.guarded(at, |run, shared| run.feed(shared, Input::Narrowed { rights }))?;
        }
        Ok(())
    }

    /// Holds back a worker with new access until every worker below its agent that is being replaced is gone.
    fn hold_back_replacements(&mut self) {
        let ends = |id: &&AgentId| {
            self.runs.iter().find(|run| run.id() == *id).is_none_or(|run| run.worker().is_being_replaced())
        };
        let living = self.tree.living_from_above();
        let wider: Vec<_> = living.iter().filter(ends).collect();
        for run in &mut self.runs {
            let waits = wider.iter().any(|below| below.is_below(run.id()));
            run.worker_mut().wait_for_subtree(waits);
        }
    }

    pub(super) async fn see_subtree_off(&mut self) -> Result<(), SessionError> {
        let living = self.tree.living_from_above();
        for run in self.runs.iter_mut().filter(|run| living.contains(run.id())) {
            run.end_one_shots(&mut self.shared).await?;
        }
        self.take_out_ended();
        while self.tree.any_ends() {
            let closed = self.tree.next().await;
            self.on_closed(closed);
        }
        if let Some(files) = &mut self.shared.written {
            let closed: Vec<_> = self.tree.closed().cloned().collect();
            for agent in closed {
                files.settle(&agent).await;
            }
        }
        while let Some(finished) = self.next_finished() {
            self.report(finished)?;
        }
        Ok(())
    }

    pub(super) fn on_closed(&mut self, closed: Closed) {
        self.shared.turns.give_back(closed.id());
        self.tree.take_closed(closed);
    }
}

fn agent_of<'a>(runs: &'a [AgentRun], id: &AgentId) -> Option<&'a Agent> {
    runs.iter().find(|run| run.id() == id).map(AgentRun::agent)
}
