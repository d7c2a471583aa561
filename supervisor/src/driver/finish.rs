//! The end of a run: the worker goes, what the host runs later is looked at, the change set is taken, the result is logged.

use std::time::Instant;

use ipc::event::{EventKind, Observer as Witness, RunResult, TurnFinished};

use super::observer::ObserverError;
use super::{ChangeTracker, Driver, DriverError, Totals, Turns, millis};
use crate::core::{EndReason, Input, RunEnd};
use crate::monitor::WorkerEvent;

impl Driver {
    /// The agent rests: the session is over, or the user may go on.
    pub(super) fn rest(&mut self, end: RunEnd) -> Result<(), DriverError> {
        if self.turns == Turns::One || ends_session(end.reason) {
            self.running.end = Some(end);
            return Ok(());
        }
        let totals = &mut self.running.totals;
        totals.steps = totals.steps.saturating_add(end.steps);
        totals.usage += end.usage;
        totals.cost += end.cost.unwrap_or_default();
        totals.text.clone_from(&end.text);
        let began = self.running.turn_began.take();
        let finished = TurnFinished {
            reason: end.reason.as_str().to_owned(),
            message: end.message,
            steps: end.steps,
            usage: end.usage,
            cost_usd: end.cost,
            duration_ms: began.map_or(0, |began| millis(began.elapsed())),
        };
        self.record(EventKind::TurnFinished(finished), Witness::Supervisor)
    }

    /// Ends the worker, puts back what the host runs later, takes the change set, and logs the result.
    pub(super) async fn finish(&mut self, mut end: RunEnd, began: Instant) -> Result<RunEnd, DriverError> {
        self.running.stream = None;
        self.add_turns_before(&mut end);
        self.end_one_shots().await?;
        for (generation, event) in self.worker.end().await {
            if let WorkerEvent::Refused(refused) = event {
                self.feed(Input::Refused(refused))?;
            } else {
                let reason = "the run is over".to_owned();
                self.record(EventKind::WorkerEnded { generation, reason }, Witness::Supervisor)?;
            }
        }
        self.compare_everything().await?;
        let changes = self.changes.take();
        let is_patch = changes.as_ref().is_some_and(ChangeTracker::writes_patch);
        if let Some(tracker) = changes
            && let Err(error) = self.take_changes(tracker).await?
            && end.reason == EndReason::Done
            && is_patch
        {
            // The patch was asked for and is missing: no script may take that for success.
            end.reason = EndReason::Internal;
            end.message = Some(error);
        }
        self.log_result(end, began)
    }

    /// Logs the result.
    pub(super) fn log_result(&mut self, end: RunEnd, began: Instant) -> Result<RunEnd, DriverError> {
        let result = RunResult {
            exit_code: end.reason.exit_code(),
            reason: end.reason.as_str().to_owned(),
            message: end.message.clone(),
            not_enforced: self.running.missing.clone(),
            text: end.text.clone(),
            steps: end.steps,
            usage: end.usage,
            cost_usd: end.cost,
            duration_ms: millis(began.elapsed()),
        };
        self.record(EventKind::Result(result), Witness::Supervisor)?;
        Ok(end)
    }

    /// What the session came to in all.
    fn add_turns_before(&mut self, end: &mut RunEnd) {
        let Totals { steps, usage, cost, text } = std::mem::take(&mut self.running.totals);
        end.steps = end.steps.saturating_add(steps);
        end.usage += usage;
        // The prices are those of the session: known for every turn, or for none.
        end.cost = end.cost.map(|last| last + cost);
        if end.text.is_empty() {
            end.text = text;
        }
    }

    /// A run goes on without the list of its changes, and ends without the patch that the user wants.
    pub(super) fn give_up_list(&mut self, error: ObserverError) -> Result<(), DriverError> {
        match self.changes.take_if(|tracker| !tracker.writes_patch()) {
            Some(tracker) => self.notice("change_set", &format!("{}: {error}", tracker.failure())),
            None => Err(error.into()),
        }
    }

    /// Logs the change set; the inner error says why there is no patch.
    async fn take_changes(&mut self, tracker: ChangeTracker) -> Result<Result<(), String>, DriverError> {
        let failed = tracker.failure();
        match tracker.finish().await {
            Ok(taken) => {
                for note in taken.notes {
                    self.notice("change_set", &note)?;
                }
                let kind = EventKind::ChangeSet { files: taken.files, patch: taken.patch };
                self.record(kind, Witness::Supervisor)?;
                Ok(Ok(()))
            }
            Err(error) => {
                let message = format!("{failed}: {error}");
                self.notice("change_set", &message)?;
                Ok(Err(message))
            }
        }
    }
}

/// Whether there is nothing to go on with after such an end.
const fn ends_session(reason: EndReason) -> bool {
    matches!(
        reason,
        EndReason::Closed
            | EndReason::Terminated
            | EndReason::HungUp
            | EndReason::NoSandbox
            | EndReason::Internal
    )
}
