//! The end: workers go, what the host runs later is looked at, the change set is taken, the result is logged.

use agent::core::{EndReason, Input, RunEnd};
use boundary::monitor::WorkerEvent;
use ipc::id::Generation;
use protocol::error_code::ErrorCode;
use protocol::event::{Account, EventKind, NoticeCode, ObservedBy, RunResult, TurnFinished, WorkerEnd};
use tokio::time::Instant;

use super::budget::with_below;
use super::observer::ObserverError;
use super::run::Totals;
use super::tripwire::events;
use super::{AgentRun, ChangeTracker, Session, SessionError, Shared, Turns, millis};
use crate::process::messages::one_line;

impl AgentRun {
    /// The agent rests: its run is over, or the user may go on.
    pub(super) fn rest(&mut self, shared: &mut Shared, mut end: RunEnd) -> Result<(), SessionError> {
        if self.sink.agent().is_top_level() {
            add_below(&mut end, shared.budget.take_below());
        }
        if self.turns == Turns::One || self.agent.is_closed() {
            self.end = Some(end);
            return Ok(());
        }
        if let Some(guard) = &mut shared.tripwire {
            guard.end_turn();
        }
        let totals = &mut self.totals;
        totals.steps = totals.steps.saturating_add(end.steps);
        totals.usage += end.usage;
        totals.cost += end.cost.unwrap_or_default();
        totals.text = end.text;
        let began = self.turn_began.take();
        let finished = TurnFinished {
            reason: end.reason,
            message: end.message,
            steps: end.steps,
            usage: end.usage,
            cost_usd: end.cost,
            duration_ms: began.map_or(0, |began| millis(began.elapsed())),
        };
        self.sink.record(shared, EventKind::TurnFinished(finished), ObservedBy::Supervisor)
    }

    /// True when nothing more is to come of this run.
    pub(super) const fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Ends the worker and everything that runs for the agent but approved effects, and waits for that; gives the
    /// worker's last words.
    pub(super) async fn wind_up(&mut self) -> Vec<(Generation, WorkerEvent)> {
        self.stream.close();
        let generation = self.worker.generation();
        let uses = self.calls.end(generation).await;
        let uses = uses.into_iter().map(|used| (generation, WorkerEvent::HostsUsed(vec![used])));
        let last = uses.chain(self.worker.end().await).collect();
        self.live.withdraw();
        last
    }

    /// Ends everything that runs for the agent, and waits for that.
    async fn finish(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        self.end_one_shots(shared).await?;
        for (generation, event) in self.wind_up().await {
            self.take_last(shared, generation, event)?;
        }
        self.log_last_guests(shared)
    }

    /// Takes one of the last events of a worker whose run is over.
    pub(super) fn take_last(
        &mut self,
        shared: &mut Shared,
        generation: Generation,
        event: WorkerEvent,
    ) -> Result<(), SessionError> {
        self.log_guests(shared)?;
        let kind = match event {
            WorkerEvent::Refused(refused) => return self.feed(shared, Input::Refused(refused)),
            WorkerEvent::HostsUsed(uses) => EventKind::HostsUsed { generation, uses },
            WorkerEvent::Ended { .. } => {
                EventKind::WorkerEnded { generation, reason: WorkerEnd::RunOver.into() }
            }
            WorkerEvent::Output { .. }
            | WorkerEvent::Prepared { .. }
            | WorkerEvent::Outcome { .. }
            | WorkerEvent::HostAsked(_) => {
                return Ok(());
            }
        };
        self.sink.record(shared, kind, ObservedBy::Supervisor)
    }

    /// Returns the totals of the agent.
    pub(super) fn account(&mut self) -> Option<RunEnd> {
        let mut end = self.end.take()?;
        let Totals { steps, usage, cost, text } = std::mem::take(&mut self.totals);
        end.steps = end.steps.saturating_add(steps);
        end.usage += usage;
        // The prices are those of the session: known for every turn, or for none.
        end.cost = end.cost.map(|last| last + cost);
        if end.text.is_empty() {
            end.text = text;
        }
        Some(end)
    }
}

impl Session {
    /// Ends the workers, puts back what the host runs later, takes the change set, and logs the result.
    pub(super) async fn finish(&mut self, mut end: RunEnd, began: Instant) -> Result<RunEnd, SessionError> {
        self.see_subtree_off().await?;
        for run in &mut self.runs {
            // All of them begin to end before one is waited for.
            run.worker.abandon();
        }
        for run in &mut self.runs {
            run.finish(&mut self.shared).await?;
        }
        self.look_at_everything().await?;
        if let Some(looks) = &mut self.shared.looks {
            let changes = looks.finish().await;
            changes.into_iter().try_for_each(|changed| self.record(EventKind::FilesChanged(changed)))?;
        }
        let changes = self.shared.changes.take();
        // The patch was asked for, and the run has done its work: what is wrong with the base is waited for.
        let is_due =
            end.reason == EndReason::Done && changes.as_ref().is_some_and(ChangeTracker::writes_patch);
        if let Some(tracker) = changes
            && let Err(error) = self.take_changes(tracker, is_due).await?
            && is_due
        {
            // The patch was asked for and is missing: no script may take that for success.
            end.reason = EndReason::Internal;
            end.message = Some(error);
        }
        self.log_result(end, began)
    }

    /// The end of the first agent, with what all of them came to.
    pub(super) fn account(&mut self) -> Option<RunEnd> {
        // What sub-agents spent is in what the budget has of them, also where they are cut off with everything else.
        let top_level = self.runs.iter_mut().filter(|run| run.id().is_top_level());
        let mut ends = top_level.filter_map(AgentRun::account);
        let mut first = ends.next()?;
        add_below(&mut first, self.shared.budget.take_rest());
        Some(ends.fold(first, |mut sum, other| {
            sum.steps = sum.steps.saturating_add(other.steps);
            sum.usage += other.usage;
            sum.cost = sum.cost.map(|cost| cost + other.cost.unwrap_or_default());
            sum
        }))
    }

    pub(super) fn log_result(&mut self, end: RunEnd, began: Instant) -> Result<RunEnd, SessionError> {
        self.close_actions()?;
        let Some(first) = self.runs.first_mut() else { return Err(SessionError::NoEnd) };
        let result = RunResult {
            exit_code: end.reason.exit_code(),
            reason: end.reason,
            error: end.message.as_deref().and_then(ErrorCode::of),
            message: end.message.clone(),
            no_full_tier: first.worker.no_full_tier().map(str::to_owned),
            not_enforced: first.worker.not_enforced().to_vec(),
            text: end.text.clone(),
            output: end.output.clone(),
            steps: end.steps,
            usage: end.usage,
            cost_usd: end.cost,
            duration_ms: millis(began.elapsed()),
        };
        first.record(&mut self.shared, EventKind::Result(result), ObservedBy::Supervisor)?;
        self.shared.log.write_held()?;
        Ok(end)
    }

    /// Looks at what the host runs later when no worker lives any more.
    async fn look_at_everything(&mut self) -> Result<(), SessionError> {
        let Some(guard) = self.shared.tripwire.take_if(|guard| !guard.is_setting()) else { return Ok(()) };
        let (looks, report) = guard.look_at_everything().await?;
        for look in looks {
            self.on_looked(look)?;
        }
        events(None, &[], report).into_iter().try_for_each(|event| self.record(event))
    }

    /// A session goes on without the list of its changes, and ends without the patch that the user wants.
    pub(super) fn give_up_list(&mut self, error: ObserverError) -> Result<(), SessionError> {
        match self.shared.changes.take_if(|tracker| !tracker.writes_patch()) {
            Some(tracker) => self.notice(NoticeCode::ChangeSet, &format!("{}: {error}", tracker.failure())),
            None => Err(error.into()),
        }
    }

    /// Logs the change set, that of nothing if its base is not taken and not due; the inner error says why there is no
    /// patch.
    async fn take_changes(
        &mut self,
        tracker: ChangeTracker,
        is_due: bool,
    ) -> Result<Result<(), String>, SessionError> {
        let failed = tracker.failure();
        let unchanged = tracker.base_is_open() && !is_due;
        let taken = if unchanged { tracker.finish_unchanged() } else { tracker.finish().await };
        match taken {
            Ok(taken) => {
                for note in taken.notes {
                    self.notice(NoticeCode::ChangeSet, &one_line(&note))?;
                }
                self.record(EventKind::ChangeSet { files: taken.files, patch: taken.patch })?;
                Ok(Ok(()))
            }
            Err(error) => {
                let message = format!("{failed}: {error}");
                self.notice(NoticeCode::ChangeSet, &message)?;
                Ok(Err(message))
            }
        }
    }
}

/// Puts down to an end of the top level what sub-agents have spent.
fn add_below(end: &mut RunEnd, below: Account) {
    end.usage += below.usage;
    end.cost = with_below(end.cost, below);
}
