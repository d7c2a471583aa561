//! A worker for exactly one approved effect: it gets the agent's standing access and a grant, then one `Commit`
//! message, and is ended.
//!
//! The start is logged before the effect is sent, with the effect's digest, so that only the effect that the user saw
//! is carried out. For a command, whose writes the user did not see, the tripwire is set.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use boundary::monitor::{GuestLog, HostQuestion, StartError, WorkerEvent};
use boundary::tripwire::{Report, Tripwire, Watch};
use gate::approval::effect_digest;
use ipc::confinement::Confinement;
use ipc::effect::{Effect, EffectError};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{CallOutcome, Chunk};
use ipc::path::WirePath;
use ipc::rights::{Grant, Rights};
use protocol::event::{EventKind, OneShot as Purpose, WorkerEnd};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::boundary::{Boundary, StartedWorker, WorkerOrder};
use super::own_calls::CallOrigin;
use super::started::worker_started;
use super::tripwire::{apart, events, remark};

/// Time limit for a patch. A command gets this in addition to its own limit, which the worker enforces.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time limit for a worker to end once its effect is over.
const FAREWELL: Duration = Duration::from_secs(2);

/// An approved effect, with the access for it.
#[derive(Clone, Debug)]
pub struct OneShot {
    pub agent: AgentId,
    pub generation: Generation,
    /// Confinement of the agent's standing worker.
    pub standing: Confinement,
    /// Files that the session's tripwire watches; `None` if the agent may not write in the project without asking.
    pub watch: Option<Watch>,
    pub asked: Grant,
    pub granted: Grant,
    /// The approved call; `None` for a rewind.
    pub call: Option<CallId>,
    pub effect: Arc<Effect>,
    pub guests: GuestLog,
}

/// Log of a one-shot worker, and receiver of its output.
pub trait Journal: Send {
    /// Logs an event, and returns when the log is synced to the disk. If this fails, the effect is not carried out.
    fn log(&mut self, kind: EventKind) -> impl Future<Output = Result<(), Unlogged>> + Send;

    fn output(&mut self, bytes: Vec<u8>) -> impl Future<Output = ()> + Send;

    /// Asks the user about a host that the grant does not have. Without an implementation the host is denied.
    fn ask_host(
        &mut self,
        _generation: Generation,
        question: HostQuestion,
    ) -> impl Future<Output = ()> + Send {
        question.answers.answer(question.number, false);
        std::future::ready(())
    }

    /// Takes text for the model, which gets it in addition to the outcome.
    fn remark(&mut self, text: String) -> impl Future<Output = ()> + Send;
}

/// Error: an event could not be written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session log cannot be written any more")]
pub struct Unlogged;

/// Error because of which an effect has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum OneShotError {
    /// No worker started, so that nothing was done.
    #[error("nothing was done: {0}")]
    Start(#[from] StartError),
    /// The effect cannot be sent, so that nothing was done.
    #[error("nothing was done: {0}")]
    Effect(#[from] EffectError),
    /// The tripwire could not be set, so that nothing was done.
    #[error(
        "nothing was done: cannot protect files (such as git hooks) that programs outside the sandbox run later: {0}"
    )]
    Watch(#[source] io::Error),
    /// The tripwire could not check files after the effect.
    #[error(
        "the command ran, but files (such as git hooks) that programs outside the sandbox run later could not be checked: {0}; check these files before you use git there"
    )]
    Unwatched(#[source] io::Error),
    #[error("the action was not done, since it could not be logged: {0}")]
    Log(#[from] Unlogged),
    /// The worker broke the protocol, so that its report on the effect is ignored.
    #[error(
        "the worker sent an invalid message ({0}); a part of the change may have been made: check the files before you repeat it"
    )]
    Violation(String),
    #[error("the worker {0}; a part of the change may have been made: check the files before you repeat it")]
    Lost(WorkerEnd),
}

impl OneShot {
    /// Returns the standing confinement with the access that was requested and granted. Protects watched files.
    pub fn confinement(&self) -> Result<Confinement, OneShotError> {
        let mut rights = self.standing.rights.with_grant(&self.grant());
        if let Some(watch) = self.watched(&rights) {
            let existing = watch.existing().map_err(OneShotError::Watch)?;
            rights.protected.extend(existing.into_iter().map(Into::into));
            rights = rights.normalised();
        }
        // A protected path is only granted by its exact name, as git's configuration is.
        let granted = self.grant().write;
        rights.protected.retain(|place| !granted.contains(place));
        Ok(Confinement { rights, ..self.standing.clone() })
    }

    pub(super) fn caches(&self) -> Option<&WirePath> {
        self.standing.environment.caches.as_ref().filter(|_| self.is_command())
    }

    fn is_command(&self) -> bool {
        matches!(*self.effect, Effect::Exec(_))
    }

    /// Returns the files to watch during a command, without granted paths; `None` for a patch, which the user saw.
    fn watched(&self, rights: &Rights) -> Option<Watch> {
        let project = self.standing.project.as_path();
        let mut watch = self.watch.clone().unwrap_or_else(|| {
            let kept = rights.protected.iter().filter_map(|path| path.as_path().strip_prefix(project).ok());
            Watch { kept: kept.map(Path::to_owned).collect(), ..Watch::of(project.to_owned()) }
        });
        let granted = self.grant().write;
        let granted: Vec<_> = granted.iter().map(|path| path.as_path().to_owned()).collect();
        watch.writable.extend(rights.write.iter().map(|path| path.as_path().to_owned()));
        watch.add_granted(&granted);
        let is_watched = |root: &WirePath| watch.places().any(|place| meets(root.as_path(), place));
        let may_write = rights.write.iter().any(is_watched);
        (may_write && self.is_command()).then_some(watch)
    }

    fn grant(&self) -> Grant {
        self.granted.meet(&self.asked)
    }

    /// Carries out the effect, and then ends the worker with its descendants. A cancelled effect has an outcome too.
    pub async fn carry_out(
        self,
        boundary: &dyn Boundary,
        journal: &mut impl Journal,
        cancelled: oneshot::Receiver<()>,
    ) -> Result<CallOutcome, OneShotError> {
        let call = self.call;
        let confinement = self.confinement()?;
        let watched = self.watched(&confinement.rights);
        // At the same time, since the effect is sent when the tripwire is set and the worker ready.
        let (set, started) = tokio::join!(set(watched), self.start(&confinement, boundary));
        let (started, tripwire) = (started?, set.map_err(OneShotError::Watch)?);
        let outcome = self.commit(&confinement, started, journal, cancelled).await;
        // The worker has ended by now, also after an error.
        match tripwire {
            Some(tripwire) => check(tripwire, call, journal).await.and(outcome),
            None => outcome,
        }
    }

    async fn start(
        &self,
        confinement: &Confinement,
        boundary: &dyn Boundary,
    ) -> Result<StartedWorker, StartError> {
        let order = WorkerOrder {
            agent: self.agent.clone(),
            generation: self.generation,
            confinement: confinement.clone(),
            reads_down: self.is_command(),
            guests: self.guests.clone(),
        };
        // The dropped sender cancels nothing: `commit` handles an early cancellation, with an outcome.
        boundary.start(order, oneshot::channel().1).await
    }

    async fn commit(
        self,
        confinement: &Confinement,
        worker: StartedWorker,
        journal: &mut impl Journal,
        mut cancelled: oneshot::Receiver<()>,
    ) -> Result<CallOutcome, OneShotError> {
        let effect_digest = effect_digest(&self.effect)?;
        let mut started = worker_started(&worker, confinement);
        let grant = self.grant().into();
        started.one_shot = Some(Purpose { call: self.call, grant, effect_digest });
        let call = self.call.map_or(CallOrigin::Rewind, CallOrigin::Model).id();
        journal.log(EventKind::WorkerStarted(started)).await?;
        if cancelled.try_recv().is_ok() {
            // No byte of the effect was sent.
            worker.control.kill();
            let attended = Attended { worker, call, patience: FAREWELL };
            return match attended.see_off(journal, cancelled).await {
                Err(OneShotError::Lost(_)) => Ok(CallOutcome::Cancelled),
                other => other,
            };
        }
        worker.control.commit(call, &self.effect)?;
        worker.control.drain();
        let attended = Attended { worker, call, patience: self.patience() };
        attended.see_off(journal, cancelled).await
    }

    fn patience(&self) -> Duration {
        match &*self.effect {
            Effect::Patch(_) => PATIENCE,
            Effect::Exec(exec) => PATIENCE + Duration::from_millis(exec.timeout_ms),
        }
    }
}

fn meets(root: &Path, place: &Path) -> bool {
    root.starts_with(place) || place.starts_with(root)
}

/// Tripwire of a call that has begun, with the changes that were found when the tripwire was set.
struct SetTripwire {
    tripwire: Tripwire,
    report: Report,
}

/// Sets the tripwire: saves copies of files that programs outside the sandbox run later. `None` without `watched`.
async fn set(watched: Option<Watch>) -> io::Result<Option<SetTripwire>> {
    let Some(watch) = watched else { return Ok(None) };
    let set = move || {
        let mut tripwire = Tripwire::set(&watch)?;
        let report = tripwire.begin_call()?;
        Ok(SetTripwire { tripwire, report })
    };
    apart(set).await.and_then(|set| set).map(Some)
}

/// Has the tripwire restore files that programs outside the sandbox run later. Logs the changes, and adds a remark.
async fn check(
    set: SetTripwire,
    call: Option<CallId>,
    journal: &mut impl Journal,
) -> Result<(), OneShotError> {
    let SetTripwire { mut tripwire, report: mut before } = set;
    let report = apart(move || tripwire.end()).await.map_err(OneShotError::Unwatched)?;
    before.append(report);
    let report = before;
    if let Some(text) = remark(&[], &report.changes) {
        journal.remark(text).await;
    }
    for event in events(call, &[], report) {
        journal.log(event).await?;
    }
    Ok(())
}

struct Attended {
    worker: StartedWorker,
    call: CallId,
    patience: Duration,
}

impl Attended {
    async fn see_off(
        mut self,
        journal: &mut impl Journal,
        mut cancelled: oneshot::Receiver<()>,
    ) -> Result<CallOutcome, OneShotError> {
        let (mut answer, mut cancellable) = (None, true);
        let mut deadline = Instant::now() + self.patience;
        let (reason, violation) = loop {
            let event = tokio::select! {
                event = self.worker.events.recv() => event,
                () = sleep_until(deadline) => {
                    self.worker.control.kill();
                    // The killed worker's `Ended` event follows.
                    deadline += self.patience;
                    continue;
                }
                asked = &mut cancelled, if cancellable => {
                    cancellable = false;
                    // A dropped sender cancels nothing.
                    if asked.is_ok() {
                        self.worker.control.cancel(self.call);
                        deadline = deadline.min(Instant::now() + FAREWELL);
                    }
                    continue;
                }
            };
            match event {
                Some(WorkerEvent::Output { chunk: Chunk::Text(bytes), .. }) => journal.output(bytes).await,
                Some(WorkerEvent::Outcome { outcome, .. }) => {
                    answer = Some(outcome);
                    deadline = Instant::now() + FAREWELL;
                }
                Some(WorkerEvent::Ended { reason, violation, .. }) => break (reason, violation),
                Some(WorkerEvent::HostsUsed(uses)) => {
                    let generation = self.worker.generation;
                    journal.log(EventKind::HostsUsed { generation, uses }).await?;
                }
                Some(WorkerEvent::HostAsked(question)) => {
                    journal.ask_host(self.worker.generation, question).await;
                }
                // The worker connection rejects pictures and parts for a `Commit`. Refusals concern processes that were
                // ended with the effect, and explain no result.
                Some(WorkerEvent::Output { .. } | WorkerEvent::Prepared { .. } | WorkerEvent::Refused(_)) => {
                }
                None => break (WorkerEnd::ReaderGone, None),
            }
        };
        self.close(journal, &reason, violation.as_deref()).await?;
        match (violation, answer) {
            (Some(violation), _) => Err(OneShotError::Violation(violation)),
            (None, Some(outcome)) => Ok(outcome),
            (None, None) => Err(OneShotError::Lost(reason)),
        }
    }

    async fn close(
        &self,
        journal: &mut impl Journal,
        reason: &WorkerEnd,
        violation: Option<&str>,
    ) -> Result<(), Unlogged> {
        let generation = self.worker.generation;
        if let Some(violation) = violation {
            journal.log(EventKind::ProtocolViolation { generation, violation: violation.to_owned() }).await?;
        }
        journal.log(EventKind::WorkerEnded { generation, reason: reason.clone().into() }).await
    }
}
