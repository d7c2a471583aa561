//! A rewind in a running session, previewed and carried out outside the main loop while no agent is at work.

use std::fmt::Write as _;
use std::path::PathBuf;

use ipc::path::WirePath;
use protocol::event::{ChangedFile, RewindPreview, RewindTarget, Rewound, SessionEvent};
use tokio::task::JoinHandle;

use super::super::rewinder::{RewindError, RewindJournal, Rewinder, RewoundFiles};
use super::user_actions::AcceptedActions;
use crate::journal::session::read_needed;

/// Maximum number of changed files that the text for the model names. The log names all of them.
const MOST_TOLD: usize = 20;

type RewindTask = JoinHandle<Result<RewindEnded, RewindError>>;

/// The rewind or preview that is under way, if any.
#[derive(Default)]
pub(super) struct OngoingRewind {
    task: Option<RewindTask>,
    /// True if `task` is only a preview.
    previews: bool,
}

pub(super) enum RewindEnded {
    Previewed(RewindPreview),
    /// Result of a rewind, and the events that the session had before the rewind.
    Done(RewoundFiles, Vec<SessionEvent>),
}

impl OngoingRewind {
    pub(super) const fn is_under_way(&self) -> bool {
        self.task.is_some()
    }

    /// Returns the kinds of user actions that the session takes now. The end of a session aborts a preview, but not a
    /// rewind that is being carried out.
    pub(super) const fn accepts(&self) -> AcceptedActions {
        match (&self.task, self.previews) {
            (None, _) => AcceptedActions::All,
            (Some(_), true) => AcceptedActions::Ends,
            (Some(_), false) => AcceptedActions::None,
        }
    }

    /// Begins a rewind of the files `only` or, if that is empty, of all files. `digest` is the digest of the preview
    /// that the user confirmed; `None` only makes a preview. `log` is the path of the session log.
    pub(super) fn begin(
        &mut self,
        rewinder: Rewinder,
        log: PathBuf,
        mut journal: impl RewindJournal + 'static,
        target: RewindTarget,
        only: Vec<WirePath>,
        digest: Option<String>,
    ) {
        self.previews = digest.is_none();
        self.task = Some(tokio::spawn(async move {
            let load = move || read_needed(&log, Some(target), &mut |_, _| ());
            let needed = tokio::task::spawn_blocking(load).await.map_err(std::io::Error::other)?;
            let events = needed.map_err(std::io::Error::other)?.events;
            let Some(digest) = digest else {
                return Ok(RewindEnded::Previewed(rewinder.preview(target, &only, &events).await?));
            };
            let done = rewinder.carry_out(target, &only, &events, &digest, &mut journal).await?;
            Ok(done.map_or_else(RewindEnded::Previewed, |files| RewindEnded::Done(files, events)))
        }));
    }

    /// Aborts a preview. A rewind that is being carried out continues.
    pub(super) fn give_up_preview(&mut self) {
        if let Some(task) = self.task.take_if(|_| self.previews) {
            task.abort();
        }
    }

    /// Waits for the end of the rewind or preview. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<RewindEnded, RewindError> {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let ended = task.await;
        self.task = None;
        ended.unwrap_or_else(|error| Err(RewindError::Kept(std::io::Error::other(error))))
    }
}

/// Returns a text about the rewind for the model, sent with the user's next message.
pub(super) fn told(rewound: &Rewound) -> String {
    let Rewound { target, files, .. } = rewound;
    let mut text = match (target.to.is_some(), target.scope.has_conversation()) {
        (true, true) => "The user took the conversation back to here.".to_owned(),
        (true, false) => "The user took files back to an earlier state.".to_owned(),
        (false, _) => "The user undid the last rewind.".to_owned(),
    };
    if !files.is_empty() {
        // Escaped, so that a file name cannot pass for other text.
        let name = |file: &ChangedFile| format!("{:?}", file.path.to_string());
        let named: Vec<_> = files.iter().take(MOST_TOLD).map(name).collect();
        let more = files.len().saturating_sub(MOST_TOLD);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let named = named.join(", ");
        // Writing to a String does not fail.
        let _ = write!(
            text,
            " These files differ from what you read: {named}{more}. Read a file again before you edit it."
        );
    }
    text
}
