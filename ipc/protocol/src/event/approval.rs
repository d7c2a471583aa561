//! How a request for an approval was decided.

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
    /// The one who decided.
    pub by: DecidedBy,
    /// Fault of the answer, or reason for its absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// The one who decided on an approval.
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
    /// Nobody in time.
    Deadline,
    /// Nobody: there is no front end that could ask, or it is gone.
    NoFrontEnd,
    /// Nobody: the answer was none that counts.
    BadAnswer,
    /// Nobody: the turn ended, or the rights changed.
    Interrupted,
    /// Nobody: a person edited the plan that it was about, and another request follows.
    Edited,
    /// Nobody: a person wants to see the other changes of the reply with it, and another request follows.
    Together,
}
