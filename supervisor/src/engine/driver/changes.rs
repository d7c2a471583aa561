//! Change set of a run: a snapshot of the project is taken during the first request, and compared at the end.

use std::pin::Pin;

use futures_util::FutureExt;
use ipc::path::WirePath;
use protocol::event::ChangedFile;

use super::observer::{ObserverError, SnapshotTaker, Taken};
use crate::journal::changes::{Base, ChangeSet, PatchFile};

type Taking = Pin<Box<dyn Future<Output = Result<Taken<Base>, ObserverError>> + Send>>;

/// Compares the project at the end with a base snapshot from the start.
pub struct ChangeTracker {
    observer: SnapshotTaker,
    patch: Option<PatchFile>,
    base: BaseState,
    notes: Vec<String>,
}

enum BaseState {
    Open(Taking),
    Taken(Base),
}

#[derive(Debug)]
pub struct TakenChanges {
    pub files: Vec<ChangedFile>,
    /// Path of the patch file; `None` if no patch is wanted.
    pub patch: Option<WirePath>,
    /// Parts of the project that the change set lacks, with reasons.
    pub notes: Vec<String>,
}

impl ChangeTracker {
    pub fn start(observer: SnapshotTaker, patch: Option<PatchFile>) -> Self {
        let task = tokio::spawn(observer.clone().base());
        let taking = task.map(|joined| {
            joined.unwrap_or_else(|error| {
                Err(ObserverError::Failed(format!("the task that reads the project failed: {error}")))
            })
        });
        Self { observer, patch, base: BaseState::Open(Box::pin(taking)), notes: Vec::new() }
    }

    pub const fn writes_patch(&self) -> bool {
        self.patch.is_some()
    }

    /// Returns the beginning of the notice about a failed snapshot or comparison. The caller appends the cause.
    pub const fn failure(&self) -> &'static str {
        if self.writes_patch() { "no patch was written" } else { "cannot list the changed files" }
    }

    /// True while the base snapshot is being taken. No call may write meanwhile.
    pub const fn base_is_open(&self) -> bool {
        matches!(self.base, BaseState::Open(_))
    }

    /// Waits for the base snapshot. Cancel safe.
    pub async fn base(&mut self) -> Result<(), ObserverError> {
        if let BaseState::Open(taking) = &mut self.base {
            let taken = taking.await?;
            self.notes = taken.notes;
            self.base = BaseState::Taken(taken.value);
        }
        Ok(())
    }

    /// Returns and removes the notes on parts of the project that the base snapshot lacks.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Finishes without a comparison, because no call that may write has begun. If a patch is wanted, it is empty.
    pub fn finish_unchanged(self) -> Result<TakenChanges, ObserverError> {
        let patch = self.patch.as_ref().map(|patch| WirePath::from(patch.path()));
        self.patch.map_or(Ok(()), |file| file.write(&ChangeSet::default()))?;
        Ok(TakenChanges { files: Vec::new(), patch, notes: Vec::new() })
    }

    pub async fn finish(mut self) -> Result<TakenChanges, ObserverError> {
        self.base().await?;
        let BaseState::Taken(base) = &self.base else {
            return Err(ObserverError::Failed("the state of the project at the start is missing".to_owned()));
        };
        let project = self.observer.confinement.project.clone();
        let excluded: Vec<_> =
            self.patch.iter().filter_map(|patch| patch.within(project.as_path())).collect();
        let Taken { value: set, notes } = self.observer.changes(base, &excluded).await?;
        let patch = self.patch.as_ref().map(|patch| WirePath::from(patch.path()));
        if let Some(file) = self.patch {
            file.write(&set)?;
        }
        Ok(TakenChanges { files: set.files(), patch, notes })
    }
}
