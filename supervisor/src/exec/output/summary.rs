//! The one object of `--output json`: the event `result`, and beside its fields the answers to a script's first questions.

use ipc::cost::Usd;
use ipc::denial::Denial;
use ipc::event::{ChangedFile, EventKind, SessionEvent};
use ipc::id::CallId;
use ipc::path::WirePath;
use serde::Serialize;

/// Denials and changes of a run, collected while it goes on.
#[derive(Debug, Default)]
pub(super) struct Tally {
    denials: Vec<OneDenial>,
    files: Option<Vec<ChangedFile>>,
}

#[derive(Debug, Serialize)]
struct OneDenial {
    /// Absent if no call tried it.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    #[serde(flatten)]
    denial: Denial,
}

/// The object. Its shape stands in docs/headless.md.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    #[serde(flatten)]
    event: &'a SessionEvent,
    answer: &'a str,
    /// Null if the files could not be compared.
    files_changed: Option<&'a [ChangedFile]>,
    denials: &'a [OneDenial],
    log: &'a WirePath,
    /// Null if the prices of the model are unknown.
    cost: Option<Usd>,
}

impl Tally {
    /// Takes what an event adds.
    pub(super) fn add(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::Denied { call, denial, .. } => {
                self.denials.push(OneDenial { call: *call, denial: denial.clone() });
            }
            EventKind::ChangeSet { files, .. } => self.files = Some(files.clone()),
            _ => {}
        }
    }

    /// The denial that the core describes so.
    pub(super) fn denial(&self, description: &str) -> Option<&Denial> {
        let denials = self.denials.iter().rev().map(|one| &one.denial);
        denials.into_iter().find(|denial| denial.to_string() == description)
    }

    /// The object of a result; none of another event.
    pub(super) fn summary<'a>(&'a self, event: &'a SessionEvent, log: &'a WirePath) -> Option<Summary<'a>> {
        let EventKind::Result(result) = &event.kind else { return None };
        Some(Summary {
            event,
            answer: &result.text,
            files_changed: self.files.as_deref(),
            denials: &self.denials,
            log,
            cost: result.cost_usd,
        })
    }
}
