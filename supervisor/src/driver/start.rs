//! Before the first request: a worker, and what the project says to agents.

use std::time::{Duration, Instant};

use ipc::confinement::Confinement;
use ipc::event::{EventKind, Observer as Witness, WorkerStarted};
use ipc::id::CallId;
use ipc::message::{Outcome, Work};
use ipc::tool::{ReadFile, ToolCall, ToolOutput};

use super::digest::Digests;
use super::workers::Happening;
use super::{Driver, DriverError};
use crate::core::{ContextItem, Input, ReadyWorker};
use crate::monitor::{Worker, WorkerEvent};

/// The project's own instructions, read by the worker like any file.
const INSTRUCTIONS: &str = "AGENTS.md";

/// The longest that the reading of [`INSTRUCTIONS`] may hold a run: a worker that was taken over need not answer.
const INSTRUCTIONS_TIME: Duration = Duration::from_secs(10);

/// The most lines of [`INSTRUCTIONS`] that the model is given.
const INSTRUCTION_LINES: u64 = 400;

/// Calls of the supervisor itself are numbered from here; the core numbers its own from 1.
const OWN_CALLS: u64 = 1 << 63;

impl Driver {
    pub(super) async fn start_worker(&mut self) -> Result<(), DriverError> {
        self.worker.start();
        match self.worker.next().await {
            Happening::NotStarted(error, _) => Err(error.into()),
            // Only a replacement closes a worker, and none was asked for yet.
            Happening::Closed { .. } | Happening::Started | Happening::Event { .. } => self.worker_is_ready(),
        }
    }

    pub(super) fn worker_is_ready(&mut self) -> Result<(), DriverError> {
        let Some(worker) = self.worker.serving() else { return Ok(()) };
        let started = worker_started(worker, self.worker.confinement());
        let ready = ReadyWorker {
            generation: worker.generation,
            pid: worker.pid,
            tier: worker.ruleset.tier,
            rights_digest: started.rights_digest.clone(),
            ruleset_digest: started.ruleset_digest.clone(),
        };
        let digest = started.ruleset_digest.clone();
        self.running.missing.clone_from(&started.not_enforced);
        self.record(EventKind::WorkerStarted(started), Witness::Supervisor)?;
        self.feed(Input::WorkerReady(ready))?;
        self.publish(digest);
        Ok(())
    }

    /// The project's instructions, if they can be had in time; a worker that does not answer is replaced.
    pub(super) async fn instructions(&mut self) -> Result<Option<ContextItem>, DriverError> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = left.map_or(INSTRUCTIONS_TIME, |left| left.min(INSTRUCTIONS_TIME));
        if let Ok(read) = tokio::time::timeout(time, self.read_instructions()).await {
            return read;
        }
        self.notice("no_instructions", &format!("{INSTRUCTIONS} was not read: the worker did not answer"))?;
        for (generation, event) in self.worker.end().await {
            if let Some(input) = self.on_worker(generation, event)? {
                self.feed(input)?;
            }
        }
        Ok(None)
    }

    /// Reads them by a call of our own: the supervisor opens nothing in a project.
    async fn read_instructions(&mut self) -> Result<Option<ContextItem>, DriverError> {
        let call = self.own_call();
        let read = ReadFile { path: INSTRUCTIONS.into(), offset: None, limit: Some(INSTRUCTION_LINES) };
        self.worker.call(call, Work::Run(ToolCall::ReadFile(read)));
        loop {
            match self.worker.next().await {
                Happening::Event { event: WorkerEvent::Outcome { call: answered, outcome }, .. }
                    if answered == call =>
                {
                    return Ok(instructions_in(outcome));
                }
                Happening::Event { generation, event: event @ WorkerEvent::Ended { .. } } => {
                    self.on_worker(generation, event)?;
                    return Ok(None);
                }
                Happening::Event { event: WorkerEvent::Refused(refused), .. } => {
                    self.feed(Input::Refused(refused))?;
                }
                Happening::NotStarted(error, _) => return Err(error.into()),
                Happening::Closed { .. } | Happening::Started | Happening::Event { .. } => {}
            }
        }
    }

    fn own_call(&mut self) -> CallId {
        self.running.next_own_call += 1;
        CallId(OWN_CALLS + self.running.next_own_call)
    }
}

/// What is told of a worker that is ready; `confinement` has the host's own paths.
pub(super) fn worker_started(worker: &Worker, confinement: &Confinement) -> WorkerStarted {
    let digests = Digests::new(confinement, &worker.ruleset);
    WorkerStarted {
        generation: worker.generation,
        pid: worker.pid,
        tier: worker.ruleset.tier.to_string(),
        landlock_abi: worker.ruleset.landlock_abi,
        rules: worker.ruleset.rules,
        rights: confinement.line(),
        rights_digest: digests.rights,
        ruleset_digest: digests.ruleset,
        one_shot: None,
        not_enforced: worker.ruleset.missing.clone(),
        startup_us: u64::try_from(worker.startup.as_micros()).unwrap_or(u64::MAX),
    }
}

fn instructions_in(outcome: Outcome) -> Option<ContextItem> {
    match outcome {
        Outcome::Done(ToolOutput::File(file)) if !file.text.trim().is_empty() => {
            Some(ContextItem { source: INSTRUCTIONS.to_owned(), text: file.text })
        }
        _ => None,
    }
}
