//! The record of a plan: its project, its session and its fate, such as approved or executed.

use std::fmt;

use ipc::id::ConversationId;
use ipc::path::WirePath;
use jiff::Timestamp;
use protocol::plan::PlaceToCreate;
use serde::{Deserialize, Serialize};

/// The record of a plan, stored next to the plan's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanRecord {
    pub project: WirePath,
    pub session: ConversationId,
    /// SHA-256 in hexadecimal of the text to which the fate applies.
    pub digest: String,
    pub fate: PlanFate,
    /// The time at which the fate last changed.
    pub since: Timestamp,
    /// Number of steps that the last execution completed or skipped so far; `None` before the first execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u32>,
    /// The session that last executed the plan, in whose log the progress is; `None` before the first execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ConversationId>,
    /// The reason for which the last execution ended early, such as `crashed: CAUSE`; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Directories that the plan asks for, and that did not exist when the plan was last shown. Executing the plan may
    /// write in their parents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_create: Vec<PlaceToCreate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanFate {
    /// The plan has not been approved or rejected.
    Proposed,
    Approved,
    Rejected,
    /// The plan was executed completely.
    Executed,
    /// The execution ended early, or is still running.
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
    pub(crate) fn new(project: WirePath, session: ConversationId, digest: String) -> Self {
        let (fate, since) = (PlanFate::Proposed, Timestamp::now());
        let (done, execution, ended, to_create) = (None, None, None, Vec::new());
        Self { project, session, digest, fate, since, done, execution, ended, to_create }
    }

    #[must_use]
    pub(crate) fn creating(self, to_create: Vec<PlaceToCreate>) -> Self {
        Self { to_create, ..self }
    }

    #[must_use]
    pub(crate) fn now(self, fate: PlanFate, digest: String) -> Self {
        Self { digest, fate, since: Timestamp::now(), done: None, execution: None, ended: None, ..self }
    }

    /// Marks the plan as approved, unless an approved execution is unfinished. An executed plan can be approved again.
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

    /// Marks the execution as started in this session, after `finished` completed steps.
    #[must_use]
    pub(crate) fn begun(self, session: ConversationId, finished: u32) -> Self {
        let (fate, since) = (PlanFate::Unfinished, Timestamp::now());
        Self { fate, since, done: Some(finished), execution: Some(session), ended: None, ..self }
    }

    /// Marks the execution as ended early for this cause.
    #[must_use]
    pub(crate) fn broke_off(self, cause: String) -> Self {
        Self { fate: PlanFate::Unfinished, since: Timestamp::now(), ended: Some(cause), ..self }
    }

    #[must_use]
    pub(crate) fn came(self, fate: PlanFate, done: u32) -> Self {
        Self { fate, since: Timestamp::now(), done: Some(done), ..self }
    }
}
