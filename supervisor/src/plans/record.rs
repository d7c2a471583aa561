//! The record of a plan.

use std::path::Path;

use ipc::id::ConversationId;
use ipc::path::WirePath;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the record's form.
const SCHEMA: u32 = 1;

/// Everything about a plan but its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: u32,
    /// The project, canonical.
    pub project: WirePath,
    /// The session in which it was made.
    pub session: Option<ConversationId>,
    /// The time of that (RFC 3339).
    pub created: String,
    /// The last approval.
    pub approval: Option<Approval>,
    /// The rejection, if none of it was approved later.
    pub rejected: Option<Rejection>,
    /// Each execution, oldest first.
    pub executed: Vec<Execution>,
}

/// An approval of exactly one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The SHA-256 of the text.
    pub digest: String,
    /// The places that may be written, absolute.
    pub write: Vec<WirePath>,
    /// The network.
    pub network: Switch,
    /// The way in which it was given.
    pub by: ApprovedBy,
    /// The time of that (RFC 3339).
    pub at: String,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// The way in which an approval was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovedBy {
    /// By `bailiwick plan approve`.
    CommandLine,
    /// By an answer in a session.
    Session,
    /// By a flag of a run.
    Flag,
}

/// A rejection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// The time of it (RFC 3339).
    pub at: String,
}

/// An execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// The session in which it was executed.
    pub session: ConversationId,
    /// The time of its end (RFC 3339).
    pub at: String,
    /// One word for its end.
    pub outcome: String,
}

/// The state of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody judged it.
    Draft,
    /// Its text is approved.
    Approved,
    /// An earlier text was approved.
    ApprovalVoid,
    /// It is rejected.
    Rejected,
    /// It was executed since its approval.
    Executed,
}

impl State {
    /// The words for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Approved => "approved",
            Self::ApprovalVoid => "approval void (edited since)",
            Self::Rejected => "rejected",
            Self::Executed => "executed",
        }
    }
}

impl Record {
    /// The record of a new plan.
    pub(super) fn new(project: &Path, session: Option<ConversationId>, now: Timestamp) -> Self {
        let created = rfc3339(now);
        let project = WirePath::from(project);
        Self {
            schema: SCHEMA,
            project,
            session,
            created,
            approval: None,
            rejected: None,
            executed: Vec::new(),
        }
    }

    /// True if this version of Bailiwick knows the form.
    pub(super) fn is_known(&self) -> bool {
        self.schema == SCHEMA
    }

    /// The approval, if it is of the text with this digest.
    pub fn approval_of(&self, digest: &str) -> Option<&Approval> {
        self.approval.as_ref().filter(|approval| self.rejected.is_none() && approval.digest == digest)
    }

    /// The state of the plan whose text has this digest.
    pub fn state(&self, digest: &str) -> State {
        if self.rejected.is_some() {
            return State::Rejected;
        }
        match (&self.approval, self.approval_of(digest)) {
            (None, _) => State::Draft,
            (Some(_), None) => State::ApprovalVoid,
            (Some(_), Some(given)) => {
                let is_later = |one: &Execution| one.at >= given.at;
                if self.executed.last().is_some_and(is_later) { State::Executed } else { State::Approved }
            }
        }
    }
}

/// A time, to the second.
pub(super) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
