//! Agent runs of a session, which are served in turn. An error or a panic of one run ends that run alone.

use std::panic::{self, AssertUnwindSafe};

use agent::core::RunEnd;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_all};
use ipc::id::AgentId;
use protocol::event::{EventKind, NoticeCode, ObservedBy};
use tracing::info_span;

use super::super::run::{Occurrence, Request, add_below};
use super::super::tripwire::{TripwireCheck, events};
use super::super::{AgentRun, SessionError, Shared, panicked};

/// Agent runs of a session, at least one. The session's result is about the first run.
pub(super) struct AgentRuns {
    runs: Vec<AgentRun>,
    /// Index of the run that [`AgentRuns::next`] polls first.
    turn: usize,
}

impl AgentRuns {
    pub(super) fn new(first: AgentRun) -> Self {
        Self { runs: vec![first], turn: 0 }
    }

    /// Adds a run, and returns its index.
    pub(super) fn push(&mut self, run: AgentRun) -> usize {
        self.runs.push(run);
        self.runs.len() - 1
    }

    /// Takes out the first run for which `is_wanted` returns true.
    pub(super) fn take_if(&mut self, is_wanted: impl FnMut(&AgentRun) -> bool) -> Option<AgentRun> {
        self.runs.iter().position(is_wanted).map(|at| self.runs.remove(at))
    }

    pub(super) fn first(&self) -> Option<&AgentRun> {
        self.runs.first()
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut AgentRun> {
        self.runs.first_mut()
    }

    pub(super) fn get(&self, at: usize) -> Option<&AgentRun> {
        self.runs.get(at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AgentRun> {
        self.runs.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut AgentRun> {
        self.runs.iter_mut()
    }

    pub(super) fn find(&self, id: &AgentId) -> Option<&AgentRun> {
        self.runs.iter().find(|run| run.id() == id)
    }

    pub(super) fn position(&self, id: &AgentId) -> Option<usize> {
        self.runs.iter().position(|run| run.id() == id)
    }

    pub(super) fn are_over(&self) -> bool {
        self.runs.iter().all(AgentRun::is_over)
    }

    /// True if an agent is in the middle of a turn.
    pub(super) fn any_is_busy(&self) -> bool {
        self.runs.iter().any(|run| !run.is_over() && run.agent().is_busy())
    }

    /// Returns the next occurrence and the index of its run. Polls the most recently served run last. A run that is
    /// over is polled while it carries out effects; the first one also if `rewinds` is true. Cancel safe.
    pub(super) async fn next(&mut self, rewinds: bool) -> (usize, Result<Occurrence, SessionError>) {
        let next = |(index, run)| -> BoxFuture<'_, _> { Box::pin(async move { (index, next(run).await) }) };
        let is_open = |(index, run): &(usize, &mut AgentRun)| {
            !run.is_over() || run.carries_out() || *index == 0 && rewinds
        };
        let open = self.runs.iter_mut().enumerate().filter(is_open);
        let mut waiting: Vec<_> = open.map(next).collect();
        if waiting.is_empty() {
            return std::future::pending().await;
        }
        let first = self.turn % waiting.len();
        waiting.rotate_left(first);
        select_all(waiting).await.0
    }

    /// Handles the occurrence of a run. The other runs are polled before this run next time.
    pub(super) fn on(
        &mut self,
        shared: &mut Shared,
        at: usize,
        happened: Result<Occurrence, SessionError>,
    ) -> Result<(), SessionError> {
        self.turn = at + 1;
        self.guarded(shared, at, |run, shared| run.on(shared, happened?))
    }

    /// Calls a function with every run that is not over.
    pub(super) fn for_each(
        &mut self,
        shared: &mut Shared,
        mut work: impl FnMut(&mut AgentRun, &mut Shared) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        (0..self.runs.len()).try_for_each(|at| {
            if self.runs[at].is_over() { Ok(()) } else { self.guarded(shared, at, &mut work) }
        })
    }

    pub(super) fn request(
        &mut self,
        shared: &mut Shared,
        at: usize,
        request: Request,
    ) -> Result<(), SessionError> {
        self.guarded(shared, at, |run, shared| run.take(shared, request))
    }

    /// Calls a function with one run. A panic, or an error about this run alone, ends the run and not the session.
    pub(super) fn guarded(
        &mut self,
        shared: &mut Shared,
        at: usize,
        work: impl FnOnce(&mut AgentRun, &mut Shared) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        let Some(run) = self.runs.get_mut(at) else { return Ok(()) };
        let _span = info_span!("agent", id = %run.id()).entered();
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(run, shared)));
        match done.unwrap_or_else(|panic| Err(panicked(&*panic))) {
            Err(error @ SessionError::Panicked(_)) => run.break_off(shared, &error),
            done => done,
        }
    }

    /// Ends every run because of an error of the session.
    pub(super) fn break_off(
        &mut self,
        shared: &mut Shared,
        error: &SessionError,
    ) -> Result<(), SessionError> {
        let mut open = self.runs.iter_mut().filter(|run| !run.is_over());
        open.try_for_each(|run| run.break_off(shared, error))
    }

    /// Logs an event that concerns all agents equally, as an event of the first agent.
    pub(super) fn record(&mut self, shared: &mut Shared, kind: EventKind) -> Result<(), SessionError> {
        let Some(first) = self.runs.first_mut() else { return Ok(()) };
        first.record(shared, kind)
    }

    /// Logs an event about an agent, whether or not the agent still exists.
    pub(super) fn record_for(
        &mut self,
        shared: &mut Shared,
        agent: &AgentId,
        kind: EventKind,
    ) -> Result<(), SessionError> {
        if let Some(run) = self.runs.iter_mut().find(|run| run.id() == agent) {
            return run.record(shared, kind);
        }
        let logged = shared.record(agent, kind, ObservedBy::Supervisor)?;
        shared.show(agent, logged);
        Ok(())
    }

    /// Passes the result of a tripwire check to the run that made the call.
    pub(super) fn take_check(
        &mut self,
        shared: &mut Shared,
        check: TripwireCheck,
    ) -> Result<(), SessionError> {
        if let Some(at) = self.position(&check.after.agent) {
            return self.request(shared, at, Request::TakeCheck(check));
        }
        // The agent of the call is gone, but its changes are logged.
        let TripwireCheck { after, beside, report } = check;
        let found = events(Some(after.call), &beside, report);
        found.into_iter().try_for_each(|event| self.record_for(shared, &after.agent, event))
    }

    /// Logs a notice that concerns all agents equally.
    pub(super) fn notice(
        &mut self,
        shared: &mut Shared,
        code: NoticeCode,
        message: &str,
    ) -> Result<(), SessionError> {
        self.record(shared, EventKind::Notice { code, message: message.to_owned() })
    }

    /// Ends all workers, and then logs their last events.
    pub(super) async fn wind_up(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        for run in &mut self.runs {
            // All workers begin to end before one is awaited.
            run.worker_mut().abandon();
        }
        for run in &mut self.runs {
            run.end_one_shots(shared).await?;
            let last = run.wind_up().await;
            run.take_last(shared, last)?;
        }
        Ok(())
    }

    /// Returns the end of the first run, with the totals of all agents; `None` if no top-level run has ended.
    pub(super) fn take_end(&mut self, shared: &mut Shared) -> Option<RunEnd> {
        // The budget has the spending of sub-agents, also of those that were broken off.
        let top_level = self.runs.iter_mut().filter(|run| run.id().is_top_level());
        let mut ends = top_level.filter_map(AgentRun::take_end);
        let mut first = ends.next()?;
        add_below(&mut first, shared.budget.take_rest());
        Some(ends.fold(first, |mut sum, other| {
            sum.steps = sum.steps.saturating_add(other.steps);
            sum.usage += other.usage;
            sum.cost = sum.cost.map(|cost| cost + other.cost.unwrap_or_default());
            sum
        }))
    }
}

async fn next(run: &mut AgentRun) -> Result<Occurrence, SessionError> {
    let next = async { if run.is_over() { run.next_left().await } else { run.next().await } };
    let next = AssertUnwindSafe(next).catch_unwind().await;
    next.map_err(|panic| panicked(&*panic))
}
