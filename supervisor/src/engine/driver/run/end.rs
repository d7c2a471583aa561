//! End of a run: its worker ends, and its totals (steps, tokens, cost) are taken.

use std::panic::{self, AssertUnwindSafe};

use agent::core::{EndReason, Execution, Input, RunEnd};
use boundary::monitor::WorkerEvent;
use ipc::id::{CallId, Generation};
use protocol::event::{Account, EventKind, SubAgentResult, WorkerEnd};
use tokio::time::Instant;

use super::super::account::account_of_end;
use super::super::budget::with_below;
use super::super::calls::CallUpdate;
use super::super::rewinder::RewindJournal;
use super::super::written_files::Written;
use super::super::{SessionError, Shared, millis, panicked};
use super::{AgentRun, Occurrence};

impl AgentRun {
    pub(in crate::engine::driver) const fn is_over(&self) -> bool {
        self.account.is_over()
    }

    /// Ends the run because of an error of the session, or a panic.
    pub(in crate::engine::driver) fn break_off(
        &mut self,
        shared: &mut Shared,
        error: &SessionError,
    ) -> Result<(), SessionError> {
        let reason = match error {
            SessionError::Tripwire(_) => EndReason::NoSandbox,
            _ => EndReason::Internal,
        };
        let message = error.told();
        let told = || self.feed(shared, Input::Broken { reason, message: message.clone() });
        // The agent's core may have panicked, and may do so again.
        let told = panic::catch_unwind(AssertUnwindSafe(told)).unwrap_or_else(|panic| Err(panicked(&*panic)));
        if matches!(error, SessionError::Panicked(_)) && !self.is_over() {
            self.account.break_off(reason, message);
            return Ok(());
        }
        told
    }

    pub(in crate::engine::driver) fn rewind_journal(&self) -> impl RewindJournal + use<> {
        self.calls.rewind_journal()
    }

    pub(in crate::engine::driver) fn carries_out(&self) -> bool {
        self.calls.carries_out()
    }

    /// Waits for the next occurrence of a run that is over but whose approved effects have not ended. Cancel safe.
    pub(in crate::engine::driver) async fn next_left(&mut self) -> Occurrence {
        self.calls.cancel_one_shots();
        tokio::select! {
            biased;
            (flushed, after) = self.flushes.next() => Occurrence::Flushed(flushed, after),
            told = self.calls.next_one_shot() => Occurrence::Call(CallUpdate::OneShot(told)),
        }
    }

    /// Cancels the approved effects that are being carried out, and waits until they are over.
    pub(in crate::engine::driver) async fn end_one_shots(
        &mut self,
        shared: &mut Shared,
    ) -> Result<(), SessionError> {
        while self.carries_out() {
            let happened = self.next_left().await;
            self.on(shared, happened)?;
            if shared.log.is_full() {
                // The session does not pause any more.
                shared.log.write_held()?;
                shared.log.sync()?;
                self.go_on(shared)?;
            }
        }
        Ok(())
    }

    /// Ends the worker and everything else except approved effects. Returns the last events for [`Self::take_last`].
    pub(in crate::engine::driver) async fn wind_up(&mut self) -> Vec<(Generation, WorkerEvent)> {
        self.stream.close();
        let generation = self.worker.generation();
        let uses = self.calls.end(generation).await;
        let uses = uses.into_iter().map(|used| (generation, WorkerEvent::HostsUsed(vec![used])));
        let last = uses.chain(self.worker.end().await).collect();
        self.live.withdraw();
        last
    }

    /// Logs the last events of a worker after its run is over, and an end for each guest.
    pub(in crate::engine::driver) fn take_last(
        &mut self,
        shared: &mut Shared,
        last: Vec<(Generation, WorkerEvent)>,
    ) -> Result<(), SessionError> {
        for (generation, event) in last {
            self.guests.record_all(shared, &mut self.sink, &self.worker)?;
            match event {
                WorkerEvent::Refused(refused) => self.feed(shared, Input::Refused(refused))?,
                WorkerEvent::HostsUsed(uses) => {
                    self.record(shared, EventKind::HostsUsed { generation, uses })?;
                }
                WorkerEvent::Ended { .. } => {
                    let reason = WorkerEnd::RunOver.into();
                    self.record(shared, EventKind::WorkerEnded { generation, reason })?;
                }
                WorkerEvent::Output { .. }
                | WorkerEvent::Prepared { .. }
                | WorkerEvent::Outcome { .. }
                | WorkerEvent::HostAsked(_) => {}
            }
        }
        self.guests.record_all(shared, &mut self.sink, &self.worker)?;
        self.guests.record_last(shared, &mut self.sink)
    }

    pub(in crate::engine::driver) fn take_end(&mut self) -> Option<RunEnd> {
        self.account.take()
    }

    /// Returns the report on a sub-agent. Its directories are removed off the main loop, because they may be large.
    pub(in crate::engine::driver) fn into_report(
        mut self,
        call: Option<CallId>,
        began: Instant,
        written: Written,
    ) -> SubAgentResult {
        if let Some(place) = self.place.take() {
            drop(tokio::task::spawn_blocking(move || drop(place)));
        }
        // Files that its file tools changed are known without a snapshot, even if git ignores them.
        let files = self.calls.changed().union(&written.files).cloned().collect();
        let (denials, denied) = self.sink.take_denials();
        SubAgentResult {
            files,
            unseen: written.unseen,
            denials,
            denied,
            duration_ms: millis(began.elapsed()),
            plan: self.agent.execution().map(Execution::account).unwrap_or_default(),
            ..account_of_end(self.id().clone(), call, self.account.take())
        }
    }
}

/// Turns the end of a planner that wrote no plan into a failure, since scripts expect the path of a plan file.
pub(super) fn without_plan(end: RunEnd) -> RunEnd {
    if end.reason != EndReason::Done {
        return end;
    }
    let message = Some("no plan was written: the agent ended its turn without a plan".to_owned());
    RunEnd { reason: EndReason::GaveUp, message, ..end }
}

pub(in crate::engine::driver) fn add_below(end: &mut RunEnd, below: Account) {
    end.usage += below.usage;
    end.cost = with_below(end.cost, below);
}
