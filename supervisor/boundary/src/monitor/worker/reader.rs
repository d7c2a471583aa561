use std::sync::{Arc, Mutex, PoisonError};

use ipc::frame::FrameError;
use ipc::gateway::{GatewayOrder, GatewayReport};
use ipc::id::CallId;
use ipc::message::{CallOutcome, ToSupervisor};
use ipc::phase::{Phase, Violation};
use ipc::refusal::Refusal;
use ipc::tool::ToolOutput;
use picture::ImageError;
use protocol::event::WorkerEnd;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

use super::calls::Register;
use super::{Incoming, WorkerEvent};
use crate::monitor::gateway::Gateway;
use crate::monitor::host_questions::HostQuestions;
use crate::monitor::host_uses::HostUses;
use crate::monitor::process::{BrokerProcess, Ended};
use crate::monitor::refusals::Refusals;

const DIAGNOSTIC_LINE: u64 = 4 << 10;

/// Exit status of a broker that [`BrokerProcess::end`] ended with SIGTERM.
const ENDED_BY_US: Ended = Ended::Exited(128 + libc::SIGTERM);

pub(super) struct WorkerReader {
    pub(super) incoming: Incoming,
    pub(super) refusals: Refusals,
    pub(super) gateway: Option<Gateway>,
    pub(super) uses: HostUses,
    pub(super) questions: HostQuestions,
    pub(super) open: Arc<Mutex<Register>>,
    pub(super) events: mpsc::Sender<WorkerEvent>,
    pub(super) broker: Arc<BrokerProcess>,
    pub(super) killed: Arc<Notify>,
}

enum Stop {
    EndOfFile,
    Violation(String),
    CoreGone,
    GatewayGone,
    Killed,
}

impl WorkerReader {
    pub(super) async fn run(mut self) {
        let killed = Arc::clone(&self.killed);
        let stop = tokio::select! {
            stop = self.read() => stop,
            () = killed.notified() => Stop::Killed,
        };
        let ended = self.broker.end().await;
        let rest = self.refusals.take_rest();
        self.tell(rest).await;
        self.end_gateway().await;
        let (open, said_goodbye) = self.left();
        let (reason, violation) = match (stop, ended) {
            (Stop::Violation(what), _) => (WorkerEnd::ProtocolBroken { violation: what.clone() }, Some(what)),
            (Stop::GatewayGone, Ok(_)) => (WorkerEnd::GatewayGone, None),
            // The broker gets a signal as soon as the pipe is closed, possibly before it has exited by itself.
            (Stop::EndOfFile, Ok(ENDED_BY_US)) if said_goodbye => (Ended::Exited(0).into(), None),
            (_, Ok(ended)) => (ended.into(), None),
            (_, Err(error)) => (WorkerEnd::NotWaitedFor { error: error.to_string() }, None),
        };
        let _ = self.events.send(WorkerEvent::Ended { reason, violation, open }).await;
    }

    /// Returns the tool calls that are still open, and true if the worker said `Bye` before its end.
    fn left(&self) -> (Vec<CallId>, bool) {
        let register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        (register.calls.ids().collect(), register.phase == Phase::Gone)
    }

    async fn read(&mut self) -> Stop {
        loop {
            let received = tokio::select! {
                received = self.incoming.receive() => received,
                report = next_report(self.gateway.as_mut()) => {
                    let Some(report) = report else {
                        return Stop::GatewayGone;
                    };
                    if let Some(event) = self.told(report) && self.events.send(event).await.is_err() {
                        return Stop::CoreGone;
                    }
                    continue;
                }
                answer = self.questions.answered() => {
                    self.order([answer]);
                    continue;
                }
                () = self.refusals.more(), if self.is_idle() => {
                    let refused = self.beside(Refusals::take_beside);
                    if !self.tell(refused).await {
                        return Stop::CoreGone;
                    }
                    continue;
                }
            };
            let message = match received {
                Ok(Some(message)) => message,
                Ok(None) => return Stop::EndOfFile,
                Err(FrameError::Truncated) => {
                    return Stop::Violation("the last message was incomplete".to_owned());
                }
                Err(error) => return Stop::Violation(error.to_string()),
            };
            // Checked before the call is closed: after an invalid picture, the call counts as open and is lost with the
            // worker.
            if let Err(error) = check_picture(&message) {
                return Stop::Violation(format!("a picture that {error}"));
            }
            if let Err(violation) = self.admit(&message) {
                return Stop::Violation(violation.to_string());
            }
            let is_outcome = matches!(message, ToSupervisor::Outcome { .. });
            let event = match message {
                ToSupervisor::Output { call, chunk } => WorkerEvent::Output { call, chunk },
                ToSupervisor::Prepared { call, part } => WorkerEvent::Prepared { call, part },
                ToSupervisor::Outcome { call, outcome } => {
                    WorkerEvent::Outcome { call, outcome: self.with_refusals(outcome) }
                }
                ToSupervisor::Ready(_) | ToSupervisor::Bye => continue,
            };
            // No call is open any more that the remaining refusals could belong to.
            let left = if is_outcome { self.beside(Refusals::take_rest) } else { Vec::new() };
            if is_outcome && self.is_idle() {
                let orders = self.questions.end_of_all();
                self.order(orders);
            }
            if self.events.send(event).await.is_err() || !self.tell(left).await {
                return Stop::CoreGone;
            }
        }
    }

    /// Counts a report of the gateway. Returns an event for a host's first use and for a valid question, else `None`.
    fn told(&mut self, report: GatewayReport) -> Option<WorkerEvent> {
        let GatewayReport::Asked { question, arrival } = report else {
            return self.uses.count(report).map(|first| WorkerEvent::HostsUsed(vec![first]));
        };
        let seen = self.refusals.asked(&arrival.name, arrival.port).cloned();
        let asked = self.questions.ask(question, arrival, seen);
        if asked.is_none() {
            self.order([GatewayOrder::Answer { question, allowed: false }]);
        }
        asked.map(WorkerEvent::HostAsked)
    }

    fn order(&self, orders: impl IntoIterator<Item = GatewayOrder>) {
        if let Some(gateway) = &self.gateway {
            orders.into_iter().for_each(|order| gateway.order(order));
        }
    }

    /// Ends the gateway, and sends an event with the final counts of its network use.
    async fn end_gateway(&mut self) {
        let Some(gateway) = self.gateway.take() else { return };
        self.uses.end_gateway(gateway).await;
        let uses = std::mem::take(&mut self.uses).all();
        if !uses.is_empty() {
            let _ = self.events.send(WorkerEvent::HostsUsed(uses)).await;
        }
    }

    /// Sends refusals that belong to no tool call. Returns false if the receiver is gone.
    async fn tell(&self, refused: Vec<Refusal>) -> bool {
        refused.is_empty() || self.events.send(WorkerEvent::Refused(refused)).await.is_ok()
    }

    /// Adds the refusals of a command to its result. All processes of a command descend from one child of the worker.
    fn with_refusals(&mut self, mut outcome: CallOutcome) -> CallOutcome {
        if let CallOutcome::Done(ToolOutput::Command(result)) = &mut outcome {
            result.refused = self.refusals.take_of(result.process);
            result.refused.retain(|refusal| !self.questions.allowed(refusal));
            let refusals = &mut self.refusals;
            let heir = |name: &_, port| Some(refusals.asked(name, port)?.process);
            let orders = self.questions.end_of(result.process, heir);
            self.order(orders);
            tracing::debug!(refused = ?result.refused, "refused");
        }
        outcome
    }

    fn is_idle(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.is_empty()
    }

    /// Runs `take` unless a tool call runs, else returns nothing. No call can start meanwhile: `take` would remove its
    /// refusals.
    fn beside(&mut self, take: impl FnOnce(&mut Refusals) -> Vec<Refusal>) -> Vec<Refusal> {
        let register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if register.calls.is_empty() { take(&mut self.refusals) } else { Vec::new() }
    }

    fn admit(&self, message: &ToSupervisor) -> Result<(), Violation> {
        let mut register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = register.phase;
        register.phase = register.calls.admit(phase, message)?;
        Ok(())
    }
}

async fn next_report(gateway: Option<&mut Gateway>) -> Option<GatewayReport> {
    match gateway {
        Some(gateway) => gateway.next().await,
        None => std::future::pending().await,
    }
}

/// Checks the picture in a message. The language model's provider would reject a whole conversation for an invalid one.
fn check_picture(message: &ToSupervisor) -> Result<(), ImageError> {
    match message {
        ToSupervisor::Outcome { outcome: CallOutcome::Done(ToolOutput::Image(image)), .. } => {
            picture::check(image)
        }
        _ => Ok(()),
    }
}

/// Logs a worker's standard error, escaped and in lines of limited length.
pub(super) async fn relay_diagnostics(mut stderr: BufReader<pipe::Receiver>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr).take(DIAGNOSTIC_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                tracing::debug!(target: "worker", "{}", text.trim_end().escape_debug());
            }
        }
    }
}
