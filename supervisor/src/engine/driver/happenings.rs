//! What comes from a worker, as inputs of the core.

use agent::core::Input;
use boundary::monitor::WorkerEvent;
use ipc::id::{CallId, Generation};
use ipc::message::{CallOutcome, Chunk};
use protocol::error_code::ErrorCode;
use protocol::event::{EventKind, NoticeCode, ObservedBy, WorkerEnd};

use super::own_calls::CallOrigin;
use super::tripwire::{GuardLook, events, remark};
use super::worker::WorkerUpdate;
use super::{AgentRun, SessionError, Shared};

impl AgentRun {
    pub(super) fn on_happening(
        &mut self,
        shared: &mut Shared,
        happening: WorkerUpdate,
    ) -> Result<Option<Input>, SessionError> {
        match happening {
            WorkerUpdate::Started => self.worker_is_ready(shared)?,
            WorkerUpdate::NotStarted(error, _)
                if self.own_calls.awaits_worker() && !self.worker.is_closed() =>
            {
                self.cannot_start(shared, &error)?;
            }
            WorkerUpdate::NotStarted(error, calls) => {
                let reason = format!("no worker could be started: {error}");
                if self.worker.is_closed() {
                    self.feed(shared, Input::NotReplaced { reason: error.to_string() })?;
                    let begin = self.own_calls.not_replaced();
                    self.do_own(shared, begin)?;
                } else {
                    self.sink.notice(shared, NoticeCode::NoWorker, &reason)?;
                }
                self.lose(shared, calls, &reason)?;
            }
            WorkerUpdate::Closed { reason, calls } => self.lose(shared, calls, &reason)?,
            WorkerUpdate::Event { generation, event } => return self.on_worker(shared, generation, event),
        }
        Ok(None)
    }

    pub(super) fn on_worker(
        &mut self,
        shared: &mut Shared,
        generation: Generation,
        event: WorkerEvent,
    ) -> Result<Option<Input>, SessionError> {
        match event {
            WorkerEvent::Output { call, chunk: Chunk::Text(bytes) } => {
                self.on_output(shared, call, &bytes);
                Ok(None)
            }
            WorkerEvent::Output { call, chunk: Chunk::Entries(entries) } => {
                if let Some(CallOrigin::Own(call)) = CallOrigin::of(call) {
                    let orders = self.own_calls.entries(call, entries);
                    self.do_own(shared, orders)?;
                }
                Ok(None)
            }
            WorkerEvent::Outcome { call, outcome } => self.on_outcome(shared, call, outcome),
            WorkerEvent::Ended { reason, violation, open } => {
                self.live.withdraw();
                if let Some(violation) = violation {
                    let kind = EventKind::ProtocolViolation { generation, violation };
                    self.sink.record(shared, kind, ObservedBy::Supervisor)?;
                }
                let kind = EventKind::WorkerEnded { generation, reason: reason.clone().into() };
                self.sink.record(shared, kind, ObservedBy::Supervisor)?;
                self.lose(shared, open, &lost_with(&reason))?;
                let begin = self.own_calls.worker_ended(self.worker.is_being_replaced());
                self.do_own(shared, begin)?;
                Ok(None)
            }
            WorkerEvent::Refused(refused) => Ok(Some(Input::Refused(refused))),
            WorkerEvent::HostAsked(question) => Ok(Some(self.on_host_asked(generation, None, question))),
            WorkerEvent::HostsUsed(uses) => {
                self.sink.record(
                    shared,
                    EventKind::HostsUsed { generation, uses },
                    ObservedBy::Supervisor,
                )?;
                Ok(None)
            }
            WorkerEvent::Prepared { call, part } => {
                self.calls.take_part(call, part);
                Ok(None)
            }
            // Comes for no call that is asked for here: the table of phases saw to it.
            WorkerEvent::Output { .. } => Ok(None),
        }
    }

    fn on_outcome(
        &mut self,
        shared: &mut Shared,
        call: CallId,
        outcome: CallOutcome,
    ) -> Result<Option<Input>, SessionError> {
        match CallOrigin::of(call) {
            Some(CallOrigin::Model(call)) => {
                return Ok(self.calls.answered(shared, self.sink.agent(), call, outcome));
            }
            Some(CallOrigin::Own(call)) => {
                let orders = self.own_calls.answered(call, &outcome);
                self.do_own(shared, orders)?;
            }
            // The standing worker has no such call.
            Some(CallOrigin::Rewind) | None => {}
        }
        Ok(None)
    }

    fn lose(&mut self, shared: &mut Shared, calls: Vec<CallId>, reason: &str) -> Result<(), SessionError> {
        for call in calls {
            match CallOrigin::of(call) {
                Some(CallOrigin::Model(call)) => {
                    if let Some(input) = self.calls.lost(shared, self.sink.agent(), call, reason) {
                        self.feed(shared, input)?;
                    }
                }
                Some(CallOrigin::Own(call)) => {
                    let shown = self.own_calls.lost(call, reason);
                    self.do_own(shared, shown)?;
                }
                Some(CallOrigin::Rewind) | None => {}
            }
        }
        Ok(())
    }

    /// The look after a call is over.
    pub(super) fn on_looked(&mut self, shared: &mut Shared, look: GuardLook) -> Result<(), SessionError> {
        let GuardLook { after, beside, report } = look;
        let call = after.call;
        if let Some(text) = remark(&beside, &report.changes) {
            self.feed(shared, Input::Remark { call, text })?;
        }
        for event in events(Some(call), &beside, report) {
            self.sink.record(shared, event, ObservedBy::Supervisor)?;
        }
        self.calls.looked(call).map_or(Ok(()), |input| self.feed(shared, input))
    }
}

/// The reason for which the calls of a worker are lost.
fn lost_with(end: &WorkerEnd) -> String {
    let words = match end {
        WorkerEnd::BrokerSignalled { signal } => {
            format!("the broker of its worker was ended by signal {signal}")
        }
        end => format!("its worker {end}"),
    };
    if *end == WorkerEnd::RunOver { words } else { ErrorCode::WorkerDied.mark(&words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_call_names_the_process_that_ended() {
        assert_eq!(
            lost_with(&WorkerEnd::Signalled { signal: 9 }),
            "its worker ended by signal 9 [worker-died]"
        );
        let broker = WorkerEnd::BrokerSignalled { signal: 9 };
        assert_eq!(lost_with(&broker), "the broker of its worker was ended by signal 9 [worker-died]");
    }
}
