//! A rewind in a running session, previewed and carried out outside the main loop while no agent is at work.

use std::fmt::Write as _;

use ipc::id::AgentId;
use ipc::path::WirePath;
use protocol::event::{
    ChangedFile, EventKind, NoticeCode, ObservedBy, RewindPreview, RewindTarget, Rewound, SessionEvent,
};
use protocol::frontend::UiEventKind;
use tokio::task::JoinHandle;

use super::super::rewinder::{RewindError, RewoundFiles};
use super::super::{AgentRun, SessionError};
use super::Session;
use crate::journal::session::read_needed;

/// Maximum number of files that the model gets to know. The log has them all.
const MOST_TOLD: usize = 20;

pub(super) type RewindTask = JoinHandle<Result<RewindEnded, RewindError>>;

pub(super) enum RewindEnded {
    Previewed(RewindPreview),
    /// Result of a rewind, with the events of the session before it.
    Done(RewoundFiles, Vec<SessionEvent>),
}

impl Session {
    /// Begins a rewind, or its preview. Refused while an agent is working.
    pub(super) fn begin_rewind(
        &mut self,
        target: RewindTarget,
        only: Vec<WirePath>,
        digest: Option<String>,
    ) -> Result<(), SessionError> {
        let is_at_work = |run: &AgentRun| !run.is_over() && run.agent().is_busy();
        if self.runs.iter().any(is_at_work) {
            return self
                .notice(NoticeCode::RewindRefused, "an agent is working: stop the agent before you rewind");
        }
        let Some(looks) = &self.shared.looks else {
            return self
                .notice(NoticeCode::RewindRefused, "this session has no saved copies of files to restore");
        };
        let Some(first) = self.runs.first() else { return Ok(()) };
        self.previews = digest.is_none();
        let mut journal = first.rewind_journal();
        let (rewinder, log) = (looks.rewinder().clone(), self.shared.log.path().to_owned());
        self.rewinding = Some(tokio::spawn(async move {
            let load = move || read_needed(&log, Some(target), &mut |_, _| ());
            let needed = tokio::task::spawn_blocking(load).await.map_err(std::io::Error::other)?;
            let events = needed.map_err(std::io::Error::other)?.events;
            let Some(digest) = digest else {
                return Ok(RewindEnded::Previewed(rewinder.preview(target, &only, &events).await?));
            };
            let done = rewinder.carry_out(target, &only, &events, &digest, &mut journal).await?;
            Ok(done.map_or_else(RewindEnded::Previewed, |files| RewindEnded::Done(files, events)))
        }));
        Ok(())
    }

    /// Aborts a preview. A rewind that is being carried out continues.
    pub(super) fn give_up_preview(&mut self) {
        if let Some(task) = self.rewinding.take_if(|_| self.previews) {
            task.abort();
        }
    }

    pub(super) fn on_rewound(&mut self, ended: Result<RewindEnded, RewindError>) -> Result<(), SessionError> {
        self.tell_changes()?;
        match ended {
            Err(error) => self.notice(NoticeCode::RewindRefused, &format!("nothing was restored: {error}")),
            Ok(RewindEnded::Previewed(preview)) => {
                self.shared.show(&AgentId::root(), UiEventKind::RewindPreview(Box::new(preview)));
                Ok(())
            }
            Ok(RewindEnded::Done(RewoundFiles { files, left, error, target }, mut events)) => {
                let rewound = Rewound { target, files, left, error };
                let told = told(&rewound);
                let Some(first) = self.runs.first_mut() else { return Ok(()) };
                let logged = self.shared.record(
                    &AgentId::root(),
                    EventKind::Rewound(rewound),
                    ObservedBy::Supervisor,
                )?;
                if let UiEventKind::Logged(event) = &logged {
                    events.push((**event).clone());
                }
                let conversation = target.scope.has_conversation().then_some(events.as_slice());
                first.rewind(&mut self.shared, logged, conversation, told)
            }
        }
    }
}

/// Returns a sentence for the model, sent with the next message.
fn told(rewound: &Rewound) -> String {
    let Rewound { target, files, .. } = rewound;
    let mut text = match (target.to.is_some(), target.scope.has_conversation()) {
        (true, true) => "The user took the conversation back to here.".to_owned(),
        (true, false) => "The user took files back to an earlier state.".to_owned(),
        (false, _) => "The user undid the last rewind.".to_owned(),
    };
    if !files.is_empty() {
        // A name is nobody's sentence, whatever it has in it.
        let name = |file: &ChangedFile| format!("{:?}", file.path.to_string());
        let named: Vec<_> = files.iter().take(MOST_TOLD).map(name).collect();
        let more = files.len().saturating_sub(MOST_TOLD);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let named = named.join(", ");
        // A String takes every write.
        let _ = write!(
            text,
            " These files differ from what you read: {named}{more}. Read a file again before you edit it."
        );
    }
    text
}

/// Waits for a rewind. Cancel safe.
pub(super) async fn rewound(rewinding: &mut Option<RewindTask>) -> Result<RewindEnded, RewindError> {
    let Some(task) = rewinding else { return std::future::pending().await };
    let ended = task.await;
    *rewinding = None;
    ended.unwrap_or_else(|error| Err(RewindError::Kept(std::io::Error::other(error))))
}
