//! Rewind of files: snapshots by workers that only read, and one-shot workers that write exactly what the user saw.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use agent::core::standing;
use boundary::monitor::GuestLog;
use gate::protected::is_acted_on;
use ipc::effect::Effect;
use ipc::id::{AgentId, ConversationId, Generation};
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::rights::{Grant, NamedRoot, RightsSummary};
use ipc::text::hexadecimal;
use protocol::event::{
    ChangeKind, ChangedFile, EventKind, LeftFile, Recorded, RewindPreview, RewindTarget, SessionEvent,
    ToolKind,
};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::task::spawn_blocking;

use super::observer::{ObserverError, SnapshotResult, SnapshotTaker};
use super::one_shot::{Journal, OneShot, Unlogged};
use crate::journal::changes::ProjectPath;
use crate::journal::checkpoints::{At, Checkpoints, Restore, Rewinding, Why, remove_old};

/// Maximum total size of kept contents of earlier sessions, in bytes: 2 GiB. Older contents are removed.
const MOST_OF_ALL: u64 = 2 << 30;

/// Note on a message after which calls may have written while no contents were kept.
const UNSEEN: &str = "no copies of files were saved after that message (as with `exec --no-rewind`): changed files stay as they are";

/// Note on a message after which no call could write.
const UNWRITTEN: &str = "no call after that message could change a file: there is nothing to restore";

/// Takes snapshots of a session's project, and restores files from them.
#[derive(Clone)]
pub struct Rewinder {
    observer: SnapshotTaker,
    state: PathBuf,
    session: ConversationId,
    kept: Arc<Mutex<Option<Checkpoints>>>,
    untold: Arc<StdMutex<Vec<SnapshotResult>>>,
}

/// Journal of the one-shot workers of a rewind.
pub trait RewindJournal: Journal {
    /// Returns the generation of a one-shot worker, which is unique within the agent.
    fn number(&mut self) -> impl Future<Output = Result<Generation, Unlogged>> + Send;
}

#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    #[error("{0}")]
    Nothing(&'static str),
    /// No snapshot of the project could be taken.
    #[error(transparent)]
    Snapshot(#[from] ObserverError),
    /// The kept contents cannot be read or written.
    #[error("cannot use the saved copies of files: {0}")]
    Kept(#[from] io::Error),
}

struct Prepared {
    kept: OwnedMutexGuard<Option<Checkpoints>>,
    rewinding: Rewinding,
    preview: RewindPreview,
}

#[derive(Debug)]
pub struct RewoundFiles {
    pub files: Vec<ChangedFile>,
    pub left: Vec<LeftFile>,
    /// Reason why not all files were restored; `None` if all files were.
    pub error: Option<String>,
    /// Target of the rewind. Its scope (files, conversation or both) is explicit.
    pub target: RewindTarget,
}

impl Rewinder {
    pub fn new(observer: SnapshotTaker, state: PathBuf, session: ConversationId) -> Self {
        Self { observer, state, session, kept: Arc::default(), untold: Arc::default() }
    }

    /// Takes a snapshot and keeps the contents of changed files. Returns sentences about files that the snapshot lacks.
    pub async fn snapshot(&self, at: At) -> Result<Vec<String>, ObserverError> {
        self.snapshot_with(at, BTreeSet::new()).await
    }

    /// Takes a snapshot that also reports the state of the `written` paths.
    pub(super) async fn snapshot_with(
        &self,
        at: At,
        written: BTreeSet<ProjectPath>,
    ) -> Result<Vec<String>, ObserverError> {
        Ok(self.snapshot_and_hold(at, written).await?.1)
    }

    /// Returns and removes the results of snapshots since the previous call.
    pub(super) fn take_untold(&self) -> Vec<SnapshotResult> {
        std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) const fn project(&self) -> &WirePath {
        &self.observer.confinement.project
    }

    /// Records the end of a turn in which nothing was written. Takes no snapshot, and returns an empty list.
    pub(super) async fn rest(&self) -> Result<Vec<String>, ObserverError> {
        let mut kept = Arc::clone(&self.kept).lock_owned().await;
        if let Some(mut checkpoints) = kept.take() {
            let rest = move || checkpoints.rest().map(|()| checkpoints);
            *kept = Some(spawn_blocking(rest).await.map_err(io::Error::other)??);
        }
        Ok(Vec::new())
    }

    async fn snapshot_and_hold(
        &self,
        at: At,
        written: BTreeSet<ProjectPath>,
    ) -> Result<(OwnedMutexGuard<Option<Checkpoints>>, Vec<String>), ObserverError> {
        let mut kept = Arc::clone(&self.kept).lock_owned().await;
        let checkpoints = match kept.take() {
            Some(checkpoints) => checkpoints,
            None => self.open().await?,
        };
        if at == At::Call && !checkpoints.has_room() {
            *kept = Some(checkpoints);
            return Ok((kept, Vec::new()));
        }
        // The rewind itself reports the files that it restored.
        let is_told = at != At::AfterRewind;
        // After an error, the next call opens the checkpoints again and cuts off an incomplete line.
        let (checkpoints, mut result) = self.observer.checkpoint(checkpoints, at, written).await?;
        *kept = Some(checkpoints);
        let notes = std::mem::take(&mut result.notes);
        if is_told {
            self.untold.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        }
        Ok((kept, notes))
    }

    async fn open(&self) -> io::Result<Checkpoints> {
        let (state, session) = (self.state.clone(), self.session.clone());
        let open = move || {
            remove_old(&state, &session, MOST_OF_ALL)?;
            Checkpoints::open(&state, &session)
        };
        spawn_blocking(open).await.map_err(io::Error::other)?
    }

    /// Returns the consequences of a rewind, for the files `only` or, if that is empty, for all files.
    pub async fn preview(
        &self,
        target: RewindTarget,
        only: &[WirePath],
        events: &[SessionEvent],
    ) -> Result<RewindPreview, RewindError> {
        let (target, messages) = settled(target, events)?;
        let wrote = may_have_written_since(target, events);
        if !target.scope.has_files() {
            return Ok(preview_of(target, only, messages, &Rewinding::default(), Vec::new()));
        }
        Ok(self.prepare(target, only, messages, wrote).await?.preview)
    }

    /// Takes a snapshot and prepares the rewind. `wrote` is true if calls after the target message may have written.
    async fn prepare(
        &self,
        target: RewindTarget,
        only: &[WirePath],
        messages: u32,
        wrote: bool,
    ) -> Result<Prepared, RewindError> {
        let (kept, mut notes) = self.snapshot_and_hold(At::BeforeRewind, BTreeSet::new()).await?;
        let checkpoints =
            kept.as_ref().ok_or_else(|| io::Error::other("no saved copies of files are available"))?;
        let checkpoint = match target.to {
            Some(message) => checkpoints.checkpoint_of(message),
            None => Some(
                checkpoints
                    .checkpoint_to_undo()
                    .ok_or(RewindError::Nothing("there is no rewind of files to undo"))?,
            ),
        };
        let project = self.observer.confinement.project.as_path();
        let protected = &self.observer.confinement.rights.protected;
        // A worker reported these contents. So they are not written to files that programs of the host run by
        // themselves. Removing such a file that an agent added is permitted.
        let is_protected = |path: &ProjectPath, is_written: bool| {
            let relative = path.to_wire();
            let place = project.join(relative.as_path());
            protected.iter().any(|root| place.starts_with(root.as_path()))
                || is_written && is_acted_on(relative.as_path())
        };
        let mut rewinding = checkpoint.map(|at| checkpoints.rewinding(at, is_protected)).unwrap_or_default();
        if !only.is_empty() {
            rewinding.keep_only(|path| only.contains(&path.to_wire()));
        }
        if checkpoint.is_none() {
            notes.push(if wrote { UNSEEN } else { UNWRITTEN }.to_owned());
        }
        let preview = preview_of(target, only, messages, &rewinding, notes);
        Ok(Prepared { kept, rewinding, preview })
    }

    /// Carries out a rewind of files if its preview still has this digest. Returns the present preview otherwise.
    pub async fn carry_out(
        &self,
        target: RewindTarget,
        only: &[WirePath],
        events: &[SessionEvent],
        digest: &str,
        journal: &mut impl RewindJournal,
    ) -> Result<Result<RewoundFiles, RewindPreview>, RewindError> {
        let (target, messages) = settled(target, events)?;
        let wrote = may_have_written_since(target, events);
        if !target.scope.has_files() {
            let preview = preview_of(target, only, messages, &Rewinding::default(), Vec::new());
            let done = RewoundFiles { files: Vec::new(), left: Vec::new(), error: None, target };
            return Ok(if preview.digest == digest { Ok(done) } else { Err(preview) });
        }
        let Prepared { kept, rewinding, preview } = self.prepare(target, only, messages, wrote).await?;
        if preview.digest != digest {
            return Ok(Err(preview));
        }
        let checkpoints =
            kept.as_ref().ok_or_else(|| io::Error::other("no saved copies of files are available"))?;
        let patches = checkpoints.patches(&self.observer.confinement.project, &rewinding)?;
        drop(kept);
        let mut error = None;
        for (patch, write) in patches {
            let grant = Grant { write, ..Grant::default() };
            if let Err(why) = self.write(Effect::Patch(patch), grant, journal).await {
                error = Some(why);
                break;
            }
        }
        // Even after an error, a snapshot shows the present files.
        let (kept, _) = self.snapshot_and_hold(At::AfterRewind, BTreeSet::new()).await?;
        let is = |restore: &&Restore| {
            kept.as_ref().is_some_and(|kept| kept.state(&restore.path) == restore.then.as_ref())
        };
        let (done, undone): (Vec<_>, Vec<_>) = rewinding.restored.iter().partition(is);
        let mut left = preview.left;
        let reason = |restore: &&Restore| LeftFile {
            path: restore.path.to_wire(),
            reason: "could not be written".to_owned(),
        };
        left.extend(undone.iter().map(reason));
        Ok(Ok(RewoundFiles { files: done.into_iter().map(changed).collect(), left, error, target }))
    }

    async fn write(
        &self,
        effect: Effect,
        grant: Grant,
        journal: &mut impl RewindJournal,
    ) -> Result<(), String> {
        let shot = OneShot {
            agent: self.observer.agent.clone(),
            generation: journal.number().await.map_err(|error| error.to_string())?,
            standing: self.observer.confinement.clone(),
            watch: None,
            asked: grant.clone(),
            granted: grant,
            call: None,
            effect: Arc::new(effect),
            guests: GuestLog::default(),
        };
        // A rewind is not cancelled.
        let (_cancel, cancelled) = oneshot::channel();
        match shot.carry_out(&*self.observer.boundary, journal, cancelled).await {
            Ok(CallOutcome::Done(_)) => Ok(()),
            Ok(CallOutcome::Failed(error)) => Err(error.message),
            Ok(CallOutcome::Prepared | CallOutcome::Cancelled) => {
                Err("the worker sent an unexpected answer".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns the target with an explicit scope, and the number of user messages that the conversation loses.
fn settled(target: RewindTarget, events: &[SessionEvent]) -> Result<(RewindTarget, u32), RewindError> {
    let Some(to) = target.to else {
        let last = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::Rewound(rewound) => Some(rewound.target.to.map(|_| rewound.target.scope)),
            EventKind::UserMessage { .. } => Some(None),
            _ => None,
        });
        let nothing =
            RewindError::Nothing("there is no rewind to undo, or you sent a message after the last rewind");
        let scope = last.flatten().ok_or(nothing)?;
        return Ok((RewindTarget { scope, ..target }, 0));
    };
    let said = standing(events);
    let said = said.iter().filter(|event| is_message(event));
    let after = said.clone().skip_while(|event| event.id != to).count();
    match after {
        0 => Err(RewindError::Nothing("the conversation has no message of yours with this number")),
        after => Ok((target, u32::try_from(after).unwrap_or(u32::MAX))),
    }
}

/// True if, after the target message, a one-shot worker ran or a worker that may write ran a call.
fn may_have_written_since(target: RewindTarget, events: &[SessionEvent]) -> bool {
    let Some(to) = target.to else { return false };
    let mut writes: BTreeMap<&AgentId, bool> = BTreeMap::new();
    for event in events {
        let is_after = event.id > to;
        match &event.kind {
            EventKind::WorkerStarted(started) if started.one_shot.is_some() && is_after => return true,
            EventKind::WorkerStarted(started) if started.one_shot.is_none() => {
                writes.insert(&event.agent, may_write(&started.rights));
            }
            EventKind::RightsChanged(changed) => {
                writes.insert(&event.agent, may_write(&changed.rights));
            }
            EventKind::ToolCallStarted { kind: ToolKind::Edit | ToolKind::Execute, .. }
                if is_after && writes.get(&event.agent) == Some(&true) =>
            {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// True if this access allows writing outside the private temp directory.
pub(super) fn may_write(rights: &Recorded<RightsSummary>) -> bool {
    rights.value().is_none_or(|rights| rights.write.iter().any(|root| *root != NamedRoot::Temp))
}

pub(super) fn is_message(event: &SessionEvent) -> bool {
    event.agent.is_top_level() && matches!(event.kind, EventKind::UserMessage { .. })
}

fn preview_of(
    target: RewindTarget,
    only: &[WirePath],
    messages: u32,
    rewinding: &Rewinding,
    notes: Vec<String>,
) -> RewindPreview {
    let left = |(path, why): &(ProjectPath, Why)| LeftFile { path: path.to_wire(), reason: why.to_string() };
    let mut preview = RewindPreview {
        target,
        only: only.to_vec(),
        files: rewinding.restored.iter().map(changed).collect(),
        left: rewinding.left.iter().map(left).collect(),
        messages: if target.scope.has_conversation() { messages } else { 0 },
        notes,
        digest: String::new(),
    };
    preview.digest = digest_of(&preview, &rewinding.restored);
    preview
}

/// Returns the digest of a preview and of the states of the files in it.
fn digest_of(preview: &RewindPreview, restored: &[Restore]) -> String {
    let states: Vec<_> = restored.iter().map(|restore| (&restore.now, &restore.then)).collect();
    let text = serde_json::to_vec(&(preview, states)).unwrap_or_default();
    hexadecimal(&Sha256::digest(text))
}

fn changed(restore: &Restore) -> ChangedFile {
    let change = match (&restore.now, &restore.then) {
        (None, _) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Deleted,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    ChangedFile { path: restore.path.to_wire(), change }
}
