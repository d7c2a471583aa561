//! The record of a plan: its project, its session, and its fate.

use std::fmt;

use ipc::id::ConversationId;
use ipc::path::WirePath;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The record of a plan, a file beside its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanRecord {
    /// The project that it is for.
    pub project: WirePath,
    /// The session that made it.
    pub session: ConversationId,
    /// SHA-256 of the bytes that the fate is of, in hexadecimal.
    pub digest: String,
    /// The fate of these bytes.
    pub fate: PlanFate,
    /// The time since which that is so.
    pub since: Timestamp,
    /// The number of the steps that its last execution completed or skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u32>,
}

/// The fate of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanFate {
    /// Nobody has decided on it.
    Proposed,
    /// It may be executed.
    Approved,
    /// It may not.
    Rejected,
    /// It was executed to its end.
    Executed,
    /// Its execution ended before.
    Unfinished,
}

impl PlanFate {
    /// The word for it, as in JSON.
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
        Self { project, session, digest, fate: PlanFate::Proposed, since: Timestamp::now(), done: None }
    }

    /// The same plan with this fate from now on.
    #[must_use]
    pub(crate) fn now(self, fate: PlanFate, digest: String) -> Self {
        Self { digest, fate, since: Timestamp::now(), done: None, ..self }
    }
}
