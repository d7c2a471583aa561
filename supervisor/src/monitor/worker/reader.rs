//! What comes from a worker: read, admitted and passed on, up to its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ipc::frame::FrameError;
use ipc::message::{Outcome, ToSupervisor};
use ipc::phase::Violation;
use ipc::refusal::Refusal;
use ipc::tool::{CommandExit, CommandResult, ToolOutput};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

use super::calls::Register;
use super::{Incoming, WorkerEvent};
use crate::monitor::process::BrokerProcess;
use crate::monitor::records::{Records, Whose};
use crate::monitor::refusals::Refusals;

/// The most of a worker's diagnostics that are kept per line.
const DIAGNOSTIC_LINE: u64 = 4 << 10;

/// Reads a worker's messages, admits them, and sees the worker to its end.
pub(super) struct Reader {
    pub(super) incoming: Incoming,
    pub(super) told: Told,
    pub(super) open: Arc<Mutex<Register>>,
    pub(super) events: mpsc::Sender<WorkerEvent>,
    pub(super) broker: Arc<BrokerProcess>,
    pub(super) killed: Arc<Notify>,
}

/// What is told of a worker's commands by others than itself.
pub(super) struct Told {
    pub(super) refusals: Refusals,
    /// Where they can be read.
    pub(super) records: Option<Records>,
    /// The worker's process id.
    pub(super) program: u32,
}

impl Told {
    /// Adds what the broker refused a command, and, where it failed, what the kernel recorded of it: a program that went its way all
    /// the same has only tried.
    async fn of_command(&mut self, result: &mut CommandResult) {
        result.refused = self.refusals.take_of(result.process);
        if let Some(records) = self.records.as_ref().filter(|_| result.exit != CommandExit::Code(0)) {
            let (program, command) = (self.program, result.command);
            let since = began(result.duration_ms);
            result.recorded = records.take(Whose::Command { program, command, since }).await;
        }
        let CommandResult { refused, recorded, .. } = result;
        tracing::debug!(?refused, ?recorded, "refused");
    }
}

/// When something began that took so long, in milliseconds since 1970; a second earlier, since clocks are coarse and pipes take time.
fn began(duration_ms: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(now).unwrap_or(u64::MAX).saturating_sub(duration_ms).saturating_sub(1000)
}

/// Why a reader stopped reading.
enum Stop {
    /// The worker closed its pipe.
    EndOfFile,
    /// The worker broke the protocol.
    Violation(String),
    /// Nobody is interested any more.
    CoreGone,
    /// It is to end.
    Killed,
}

impl Reader {
    pub(super) async fn run(mut self) {
        let killed = Arc::clone(&self.killed);
        let stop = tokio::select! {
            stop = self.read() => stop,
            () = killed.notified() => Stop::Killed,
        };
        let ended = self.broker.end().await;
        let rest = self.told.refusals.take_rest();
        self.tell(rest).await;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.ids().collect();
        let (reason, violation) = match (stop, ended) {
            (Stop::Violation(what), _) => (format!("killed: it broke the protocol ({what})"), Some(what)),
            (_, Ok(ended)) => (ended.to_string(), None),
            (_, Err(error)) => (format!("cannot be waited for: {error}"), None),
        };
        let _ = self.events.send(WorkerEvent::Ended { reason, violation, open }).await;
    }

    async fn read(&mut self) -> Stop {
        loop {
            let received = tokio::select! {
                received = self.incoming.receive() => received,
                () = self.told.refusals.more(), if self.is_idle() => {
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
                Err(FrameError::Truncated) => return Stop::Violation("its last frame was cut".to_owned()),
                Err(error) => return Stop::Violation(error.to_string()),
            };
            if let Err(violation) = self.admit(&message) {
                return Stop::Violation(violation.to_string());
            }
            let is_outcome = matches!(message, ToSupervisor::Outcome { .. });
            let event = match message {
                ToSupervisor::Output { call, chunk } => WorkerEvent::Output { call, chunk },
                ToSupervisor::Prepared { call, part } => WorkerEvent::Prepared { call, part },
                ToSupervisor::Outcome { call, outcome } => {
                    WorkerEvent::Outcome { call, outcome: self.with_refusals(outcome).await }
                }
                ToSupervisor::Ready(_) | ToSupervisor::Bye => continue,
            };
            // No call is open that could still claim what is left: it was cut short, or it outlived its call.
            let left = if is_outcome { self.beside(Refusals::take_rest) } else { Vec::new() };
            if self.events.send(event).await.is_err() || !self.tell(left).await {
                return Stop::CoreGone;
            }
        }
    }

    /// Tells what was refused beside the calls; whether anybody listens.
    async fn tell(&self, refused: Vec<Refusal>) -> bool {
        refused.is_empty() || self.events.send(WorkerEvent::Refused(refused)).await.is_ok()
    }

    /// What was refused goes with the command that it was refused: each has a process of its own, from which all its others
    /// descend.
    async fn with_refusals(&mut self, mut outcome: Outcome) -> Outcome {
        if let Outcome::Done(ToolOutput::Command(result)) = &mut outcome {
            self.told.of_command(result).await;
        }
        outcome
    }

    fn is_idle(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.is_empty()
    }

    /// Runs this if no call is open, and has none opened meanwhile: what is refused from then on may belong to it.
    fn beside(&mut self, take: impl FnOnce(&mut Refusals) -> Vec<Refusal>) -> Vec<Refusal> {
        let register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if register.calls.is_empty() { take(&mut self.told.refusals) } else { Vec::new() }
    }

    fn admit(&self, message: &ToSupervisor) -> Result<(), Violation> {
        let mut register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = register.phase;
        register.phase = register.calls.admit(phase, message)?;
        Ok(())
    }
}

/// Logs a worker's diagnostics: bounded, and as text that nobody trusts.
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
