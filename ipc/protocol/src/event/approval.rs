//! Decisions on requests for an approval.

use ipc::id::{ApprovalId, CallId, GrantId};
use serde::{Deserialize, Serialize};

use crate::approval::ReviewDecision;

/// Decision on a request for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalAnswered {
    /// The request; absent where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ApprovalId>,
    /// The call that it is for.
    pub call: CallId,
    /// The decision.
    pub decision: ReviewDecision,
    /// Author of the decision.
    pub by: DecidedBy,
    /// Fault of the answer, or reason for its absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Author of a decision on an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum DecidedBy {
    /// The user, by an answer that fits the request.
    User,
    /// The user: the command is their own, and no call of the model's.
    OwnCommand,
    /// An approval of the user for the session.
    SessionGrant(GrantId),
    /// The user's configuration.
    Configuration,
    /// Nobody answered in time.
    Deadline,
    /// Nobody: no front end can ask.
    NoFrontEnd,
    /// Nobody: the answer was invalid.
    BadAnswer,
    /// Nobody: the turn ended, or the rights changed.
    Interrupted,
    /// Nobody: a person edited the plan, and another request follows.
    Edited,
    /// Nobody: a person wants to see the reply's other changes too, and another request follows.
    Together,
}
