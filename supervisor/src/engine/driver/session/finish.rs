//! End of a session: workers end, the tripwire checks files, the change set is taken, and the result is logged.

use agent::core::{EndReason, RunEnd};
use protocol::error_code::ErrorCode;
use protocol::event::{EventKind, NoticeCode, RunResult};
use tokio::time::Instant;

use super::super::observer::ObserverError;
use super::super::run::add_below;
use super::super::tripwire::events;
use super::super::{AgentRun, ChangeTracker, SessionError, millis};
use super::Session;
use crate::process::messages::one_line;

impl Session {
    /// Ends the workers, has the tripwire check files, takes the change set, and logs the result.
    pub(super) async fn finish(&mut self, mut end: RunEnd, began: Instant) -> Result<RunEnd, SessionError> {
        self.see_subtree_off().await?;
        for run in &mut self.runs {
            // All of them begin to end before one is waited for.
            run.worker_mut().abandon();
        }
        for run in &mut self.runs {
            run.end_one_shots(&mut self.shared).await?;
            let last = run.wind_up().await;
            run.take_last(&mut self.shared, last)?;
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

    /// Returns the end of the first agent, with the totals of all agents.
    pub(super) fn account(&mut self) -> Option<RunEnd> {
        // What sub-agents spent is in what the budget has of them, also where they are cut off with everything else.
        let top_level = self.runs.iter_mut().filter(|run| run.id().is_top_level());
        let mut ends = top_level.filter_map(AgentRun::take_end);
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
            no_full_tier: first.worker().no_full_tier().map(str::to_owned),
            not_enforced: first.worker().not_enforced().to_vec(),
            text: end.text.clone(),
            output: end.output.clone(),
            steps: end.steps,
            usage: end.usage,
            cost_usd: end.cost,
            duration_ms: millis(began.elapsed()),
        };
        first.record(&mut self.shared, EventKind::Result(result))?;
        self.shared.log.write_held()?;
        Ok(end)
    }

    async fn look_at_everything(&mut self) -> Result<(), SessionError> {
        let Some(guard) = self.shared.tripwire.take_if(|guard| !guard.is_setting()) else { return Ok(()) };
        let (looks, report) = guard.look_at_everything().await?;
        for look in looks {
            self.on_looked(look)?;
        }
        events(None, &[], report).into_iter().try_for_each(|event| self.record(event))
    }

    /// Continues a session without the list of its changes. A session whose user wants a patch ends instead.
    pub(super) fn give_up_list(&mut self, error: ObserverError) -> Result<(), SessionError> {
        match self.shared.changes.take_if(|tracker| !tracker.writes_patch()) {
            Some(tracker) => self.notice(NoticeCode::ChangeSet, &format!("{}: {error}", tracker.failure())),
            None => Err(error.into()),
        }
    }

    /// Logs the change set, empty if its base is neither taken nor due. The inner error is the reason for a missing
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
