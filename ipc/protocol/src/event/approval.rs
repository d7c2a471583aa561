//! Decisions on requests for an approval.

use std::fmt;

use ipc::id::{ApprovalId, CallId, GrantId};
use serde::{Deserialize, Serialize};

use crate::approval::{ReviewDecision, TurnAccess};

/// Decision on a request for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalAnswered {
    /// The request; absent where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ApprovalId>,
    /// The call that it is for.
    pub call: CallId,
    /// The decision: approved, once or for longer, or denied.
    pub decision: ReviewDecision,
    /// Author of the decision.
    pub by: DecidedBy,
    /// Fault of the answer, or reason for its absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A yes of the user to everything in a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TurnAllowed {
    /// The call that was asked about.
    pub call: CallId,
    /// The access until the turn ends.
    pub access: TurnAccess,
}

impl fmt::Display for TurnAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TurnAccess { rights, network_after, .. } = &self.access;
        write!(
            f,
            "everything in this turn is allowed: {rights}; when the turn ends, the access is as before"
        )?;
        if network_after.reaches_out() {
            write!(f, ", and the network {network_after} again")
        } else {
            Ok(())
        }
    }
}

/// End of the access that the user gave to a whole turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum TurnAllowanceEnd {
    /// The turn ended.
    TurnEnded,
    /// The user changed the approval mode.
    ModeChanged,
}

impl fmt::Display for TurnAllowanceEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the yes to everything in the turn is over: ")?;
        f.write_str(match self {
            Self::TurnEnded => "the turn ended",
            Self::ModeChanged => "the mode changed",
        })
    }
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
