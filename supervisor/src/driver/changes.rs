//! The change set of a run: its base taken beside the first request, its difference at the end.

use std::path::PathBuf;
use std::pin::Pin;

use futures_util::FutureExt;
use ipc::event::ChangedFile;
use ipc::path::WirePath;

use super::observer::{Observer, ObserverError, Taken};
use crate::changes::{Base, PatchFile, ProjectPath, patch};

type Taking = Pin<Box<dyn Future<Output = Result<Taken<Base>, ObserverError>> + Send>>;

/// Where the patch goes.
#[derive(Debug)]
pub struct PatchRequest {
    /// The open file.
    pub file: PatchFile,
    /// Its path as the user gave it.
    pub path: PathBuf,
    /// Its path inside the project, if it lies there: it is no part of the patch.
    pub inside: Option<ProjectPath>,
}

/// Follows the project from its base to its difference.
pub struct ChangeTracker {
    observer: Observer,
    request: PatchRequest,
    base: BaseState,
    notes: Vec<String>,
}

enum BaseState {
    Open(Taking),
    Taken(Base),
}

/// The end of the story.
#[derive(Debug)]
pub struct TakenChanges {
    /// The files that changed.
    pub files: Vec<ChangedFile>,
    /// Where the patch was written.
    pub patch: Option<WirePath>,
    /// What is not in it, and why.
    pub notes: Vec<String>,
}

impl ChangeTracker {
    /// Begins to take the base.
    pub fn start(observer: Observer, request: PatchRequest) -> Self {
        let task = tokio::spawn(observer.clone().base());
        let taking = task.map(|joined| {
            joined.unwrap_or_else(|error| Err(ObserverError::Failed(format!("the task ended: {error}"))))
        });
        Self { observer, request, base: BaseState::Open(Box::pin(taking)), notes: Vec::new() }
    }

    /// Whether the base is still being taken: nothing may write until it is.
    pub const fn base_is_open(&self) -> bool {
        matches!(self.base, BaseState::Open(_))
    }

    /// Waits for the base. Cancel safe.
    pub async fn base(&mut self) -> Result<(), ObserverError> {
        if let BaseState::Open(taking) = &mut self.base {
            let taken = taking.await?;
            self.notes = taken.notes;
            self.base = BaseState::Taken(taken.value);
        }
        Ok(())
    }

    /// What could not be seen of the base.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Takes the difference and writes the patch.
    pub async fn finish(mut self) -> Result<TakenChanges, ObserverError> {
        self.base().await?;
        let BaseState::Taken(base) = &self.base else {
            return Err(ObserverError::Failed("the base is missing".to_owned()));
        };
        let excluded: Vec<_> = self.request.inside.iter().cloned().collect();
        let Taken { value: set, mut notes } = self.observer.changes(base, &excluded).await?;
        let mut text = Vec::new();
        patch::write(&set, &mut text)?;
        self.request.file.write(&text)?;
        notes.extend(set.changes().iter().filter_map(crate::changes::Change::obstacle));
        Ok(TakenChanges { files: set.files(), patch: Some(WirePath::from(self.request.path)), notes })
    }
}
