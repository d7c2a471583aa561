//! Snapshots of the project, taken by confined workers that only read. File contents that a worker sends go into
//! unlinked files, which no agent can open.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use boundary::monitor::{GuestLog, StartError, WorkerEvent};
use ipc::confinement::Confinement;
use ipc::effect::{Assembler, Effect};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{CallOutcome, Work};
use ipc::tool::{Ignored, SnapshotSummary, ToolCall, ToolOutput};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::boundary::{Boundary, StartedWorker, WorkerOrder};
use crate::journal::changes::{
    Base, ChangeSet, Intake, IntakeError, PatchFileError, ProjectPath, Snapshot, SnapshotLimits, batches,
};
use crate::journal::checkpoints::{At, CheckpointChanges, Checkpoints, nanoseconds};

/// Maximum time without a message from an observer, which reads untrusted files and must not block a run for ever.
const SILENCE: Duration = Duration::from_secs(30);

/// Maximum duration of a snapshot, even if the observer keeps sending messages.
const LONGEST: Duration = Duration::from_mins(10);

/// Starts observers: workers that read the project and change nothing, for snapshots of its files.
#[derive(Clone)]
pub struct SnapshotTaker {
    pub boundary: Arc<dyn Boundary>,
    pub agent: AgentId,
    /// Read-only confinement of the observer.
    pub confinement: Confinement,
    /// Directory for file contents. Agents cannot see it.
    pub store: std::path::PathBuf,
}

/// A value derived from an observer's messages.
#[derive(Debug)]
pub struct Taken<T> {
    pub value: T,
    /// Sentences about files that the snapshot lacks.
    pub notes: Vec<String>,
}

/// Snapshot that is kept for rewinds, with the changes since the previous one.
#[derive(Debug, Default)]
pub(super) struct SnapshotResult {
    /// Sentences about files that the snapshot lacks.
    pub(super) notes: Vec<String>,
    pub(super) seen: CheckpointChanges,
    pub(super) ignored: Ignored,
}

/// Error because of which there is no snapshot or no patch.
#[derive(Debug, thiserror::Error)]
pub enum ObserverError {
    #[error("cannot read the project's files: {0}")]
    Start(#[from] StartError),
    /// The observer's data is not a valid snapshot.
    #[error("the data about the project's files is invalid: {0}")]
    Intake(#[from] IntakeError),
    #[error("cannot read the project's files: {0}")]
    Failed(String),
    #[error(transparent)]
    Patch(#[from] PatchFileError),
    #[error("cannot save the state of the project's files: {0}")]
    Store(#[from] io::Error),
}

impl SnapshotTaker {
    /// Takes a snapshot with file contents, at the start of the session.
    pub async fn base(self) -> Result<Taken<Base>, ObserverError> {
        let intake = Intake::of_contents(self.store()?, SnapshotLimits::default());
        let mut session = self.start().await?;
        // The file system's clock advances in coarse ticks and lags behind; `Base` allows for that.
        let asked = SystemTime::now();
        let (snapshot, notes) = session.take(Work::Snapshot { contents: true }, intake).await?;
        Ok(Taken { value: Base::new(snapshot, asked), notes })
    }

    /// Compares the project with its base snapshot, without the `excluded` paths.
    pub async fn changes(
        self,
        base: &Base,
        excluded: &[ProjectPath],
    ) -> Result<Taken<ChangeSet>, ObserverError> {
        let mut session = self.start().await?;
        let intake = Intake::of_manifest(SnapshotLimits::default());
        let (now, mut notes) = session.take(Work::Snapshot { contents: false }, intake).await?;
        let comparison = base.compare(now, excluded);
        let mut intake = comparison.intake(self.store()?, SnapshotLimits::default());
        for paths in comparison.fetches() {
            notes.extend(session.feed(Work::Fetch { paths }, &mut intake).await?.notes);
        }
        let value = comparison.resolve(&intake.finish()?)?;
        notes.extend(value.notes().iter().cloned());
        Ok(Taken { value, notes })
    }

    /// Takes a snapshot of the metadata of the project's files and links, without contents.
    pub async fn stamps(self) -> Result<Snapshot, ObserverError> {
        let mut session = self.start().await?;
        let intake = Intake::of_manifest(SnapshotLimits::default());
        Ok(session.take(Work::Snapshot { contents: false }, intake).await?.0)
    }

    /// Takes a snapshot, keeps contents of changed files, and reports the state of the `written` paths.
    pub(super) async fn checkpoint(
        &self,
        mut checkpoints: Checkpoints,
        at: At,
        written: BTreeSet<ProjectPath>,
    ) -> Result<(Checkpoints, SnapshotResult), ObserverError> {
        let mut session = self.start().await?;
        let asked = SystemTime::now();
        let mut intake = Intake::of_manifest(SnapshotLimits::default());
        let summary = session.feed(Work::Snapshot { contents: false }, &mut intake).await?;
        let (manifest, mut notes, ignored) = (intake.finish()?, summary.notes, summary.ignored);
        let gone = session.missing(&written, &manifest, self.store()?).await?;
        let wanted = checkpoints.wanted(&manifest);
        let mut intake = wanted.intake(self.store()?);
        for paths in wanted.fetches() {
            notes.extend(session.feed(Work::Fetch { paths }, &mut intake).await?.notes);
        }
        let fetched = intake.finish()?;
        let project = self.confinement.project.clone();
        let keep = move || {
            let after_cut = checkpoints.is_within_turn();
            let differences = checkpoints.take(at, asked, &manifest, &wanted, &fetched)?;
            let differs: BTreeSet<_> =
                differences.iter().map(|difference| difference.path().clone()).collect();
            let (changes, more) = checkpoints.told(differences, &project)?;
            let gone = &gone - &differs;
            let unchanged = written.into_iter().filter(|path| manifest.has(path) && !differs.contains(path));
            let (asked_ns, unchanged) = (nanoseconds(asked), unchanged.collect());
            let seen = CheckpointChanges { asked_ns, changes, more, after_cut, unchanged, gone };
            Ok((checkpoints, SnapshotResult { notes, seen, ignored }))
        };
        spawn_blocking(keep).await.map_err(io::Error::other)?
    }

    /// Returns the effect that each call would have now; `None` for a call without an effect.
    pub async fn effects(&self, calls: Vec<ToolCall>) -> Result<Vec<Option<Effect>>, ObserverError> {
        let mut session = self.start().await?;
        let mut effects = Vec::with_capacity(calls.len());
        for call in calls {
            effects.push(session.prepare(call).await?);
        }
        Ok(effects)
    }

    async fn start(&self) -> Result<ObserverSession, ObserverError> {
        let order = WorkerOrder {
            agent: self.agent.clone(),
            generation: Generation(1),
            confinement: self.confinement.clone(),
            reads_down: false,
            guests: GuestLog::default(),
        };
        // The dropped sender cancels nothing. Dropping this future ends the worker.
        let worker = self.boundary.start(order, oneshot::channel().1).await?;
        Ok(ObserverSession { worker, calls: CallId::default(), until: Instant::now() + LONGEST })
    }

    fn store(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.store)
    }
}

struct ObserverSession {
    worker: StartedWorker,
    calls: CallId,
    until: Instant,
}

impl ObserverSession {
    async fn take(
        &mut self,
        work: Work,
        mut intake: Intake,
    ) -> Result<(Snapshot, Vec<String>), ObserverError> {
        let summary = self.feed(work, &mut intake).await?;
        Ok((intake.finish()?, summary.notes))
    }

    /// Returns those paths at which nothing exists. A path that `manifest` lacks may exist, because git ignores it.
    async fn missing(
        &mut self,
        paths: &BTreeSet<ProjectPath>,
        manifest: &Snapshot,
        store: File,
    ) -> Result<BTreeSet<ProjectPath>, ObserverError> {
        let unseen: BTreeSet<_> = paths.iter().filter(|path| !manifest.has(path)).cloned().collect();
        let mut intake = Intake::of_paths(store, SnapshotLimits::default(), Arc::new(unseen.clone()));
        for paths in batches(unseen.iter()) {
            self.feed(Work::Fetch { paths }, &mut intake).await?;
        }
        let found = intake.finish()?;
        Ok(unseen.into_iter().filter(|path| !found.has(path)).collect())
    }

    async fn prepare(&mut self, call: ToolCall) -> Result<Option<Effect>, ObserverError> {
        let (mut assembler, mut effect) = (Assembler::default(), None);
        self.begin(Work::Prepare(call));
        loop {
            match self.event().await? {
                WorkerEvent::Prepared { part, .. } => {
                    let pushed = assembler.push(part);
                    effect = pushed.map_err(|error| ObserverError::Failed(error.to_string()))?;
                }
                WorkerEvent::Outcome { outcome: CallOutcome::Prepared, .. } => return Ok(effect),
                WorkerEvent::Outcome { .. } => return Ok(None),
                WorkerEvent::Ended { reason, .. } => {
                    return Err(ObserverError::Failed(format!("the worker {reason}")));
                }
                WorkerEvent::Output { .. }
                | WorkerEvent::Refused(_)
                | WorkerEvent::HostsUsed(_)
                | WorkerEvent::HostAsked(_) => {}
            }
        }
    }

    fn begin(&mut self, work: Work) {
        self.calls = self.calls.next();
        self.worker.control.call(self.calls, work);
    }

    async fn event(&mut self) -> Result<WorkerEvent, ObserverError> {
        if Instant::now() > self.until {
            let took = LONGEST.as_secs() / 60;
            return Err(ObserverError::Failed(format!("the worker did not finish within {took} minutes")));
        }
        let event = timeout(SILENCE, self.worker.events.recv()).await;
        let silent =
            |_| ObserverError::Failed(format!("the worker did not respond for {} s", SILENCE.as_secs()));
        event.map_err(silent)?.ok_or_else(|| ObserverError::Failed("the worker has ended".to_owned()))
    }

    async fn feed(&mut self, work: Work, intake: &mut Intake) -> Result<SnapshotSummary, ObserverError> {
        self.begin(work);
        loop {
            match self.event().await? {
                WorkerEvent::Output { chunk, .. } => intake.accept(chunk)?,
                WorkerEvent::Outcome { outcome, .. } => return summary(outcome),
                WorkerEvent::Ended { reason, .. } => {
                    return Err(ObserverError::Failed(format!("the worker {reason}")));
                }
                // An observer runs only the supervisor's own calls, whose results include refusals.
                WorkerEvent::Prepared { .. }
                | WorkerEvent::Refused(_)
                | WorkerEvent::HostsUsed(_)
                | WorkerEvent::HostAsked(_) => {}
            }
        }
    }
}

fn summary(outcome: CallOutcome) -> Result<SnapshotSummary, ObserverError> {
    match outcome {
        CallOutcome::Done(ToolOutput::Snapshot(summary)) => Ok(summary),
        CallOutcome::Failed(error) => Err(ObserverError::Failed(error.message)),
        CallOutcome::Done(_) | CallOutcome::Prepared | CallOutcome::Cancelled => {
            Err(ObserverError::Failed("the worker sent an unexpected answer".to_owned()))
        }
    }
}
