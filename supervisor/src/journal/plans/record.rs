//! The record of a plan: its project, its session, and its fate.

use std::fmt;

use ipc::id::ConversationId;
use ipc::path::WirePath;
use jiff::Timestamp;
use protocol::plan::PlaceToCreate;
use serde::{Deserialize, Serialize};

/// The record of a plan, a file next to the plan's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanRecord {
    pub project: WirePath,
    pub session: ConversationId,
    /// SHA-256 of the bytes that the fate is of, in hexadecimal.
    pub digest: String,
    /// The fate of these bytes.
    pub fate: PlanFate,
    /// Time of the last change of the fate.
    pub since: Timestamp,
    /// The number of the steps that its last execution completed or skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u32>,
    /// The session that executed it last, from the start of the execution on: its log has the progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ConversationId>,
    /// The end of its last execution, where that is not the plan's own: `crashed: CAUSE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The places that it asks for and that were to be created when it was shown last: an execution may write their directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_create: Vec<PlaceToCreate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanFate {
    /// No decision yet.
    Proposed,
    Approved,
    Rejected,
    /// It was executed to its end.
    Executed,
    /// Its execution ended early.
    Unfinished,
}

impl PlanFate {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Executed => "executed",
            Self::Unfinished => "unfinished",
        }
    }
}

impl fmt::Display for PlanFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PlanRecord {
    /// The record of a new plan.
    pub(crate) fn new(project: WirePath, session: ConversationId, digest: String) -> Self {
        let (fate, since) = (PlanFate::Proposed, Timestamp::now());
        let (done, execution, ended, to_create) = (None, None, None, Vec::new());
        Self { project, session, digest, fate, since, done, execution, ended, to_create }
    }

    /// Sets the places that the plan is to create.
    #[must_use]
    pub(crate) fn creating(self, to_create: Vec<PlaceToCreate>) -> Self {
        Self { to_create, ..self }
    }

    /// Sets the fate from now on.
    #[must_use]
    pub(crate) fn now(self, fate: PlanFate, digest: String) -> Self {
        Self { digest, fate, since: Timestamp::now(), done: None, execution: None, ended: None, ..self }
    }

    /// Permits execution. An execution that began before keeps its place.
    #[must_use]
    pub(crate) fn approved(self) -> Self {
        match self.fate {
            PlanFate::Approved | PlanFate::Unfinished => self,
            PlanFate::Proposed | PlanFate::Rejected | PlanFate::Executed => {
                let digest = self.digest.clone();
                self.now(PlanFate::Approved, digest)
            }
        }
    }

    /// Starts the execution in this session, after so many steps.
    #[must_use]
    pub(crate) fn begun(self, session: ConversationId, finished: u32) -> Self {
        let (fate, since) = (PlanFate::Unfinished, Timestamp::now());
        Self { fate, since, done: Some(finished), execution: Some(session), ended: None, ..self }
    }

    /// Ends the execution early, for this cause.
    #[must_use]
    pub(crate) fn broke_off(self, cause: String) -> Self {
        Self { fate: PlanFate::Unfinished, since: Timestamp::now(), ended: Some(cause), ..self }
    }

    /// Sets the progress of the execution.
    #[must_use]
    pub(crate) fn came(self, fate: PlanFate, done: u32) -> Self {
        Self { fate, since: Timestamp::now(), done: Some(done), ..self }
    }
}
