//! Events about decisions on requests for an approval.

use std::fmt;

use ipc::id::{ApprovalId, CallId, GrantId};
use ipc::path::WirePath;
use serde::{Deserialize, Serialize};

use crate::approval::{ReviewDecision, TurnAccess};

/// Decision on a request for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalAnswered {
    /// Id of the request; absent if nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ApprovalId>,
    /// The tool call that needs the approval.
    pub call: CallId,
    /// The decision: approved, once or for longer, or denied.
    pub decision: ReviewDecision,
    /// Author of the decision, or cause of a denial that nobody decided.
    pub by: DecidedBy,
    /// Fault of the answer, or reason why there is none; absent for a valid answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The part that is carried out; absent unless the change was approved in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_part: Option<AppliedPart>,
}

/// The part of a change that is carried out instead of the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AppliedPart {
    /// SHA-256 of the part as an effect with all its bytes, in hexadecimal.
    pub effect: String,
    /// Number of all hunks in the files from which hunks were chosen.
    pub hunks: usize,
    /// The hunks that were left out, by file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutHunks>,
    /// The files whose new text the user edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<WirePath>,
}

/// Hunks of a file that were not approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftOutHunks {
    /// Path of the changed file.
    pub path: WirePath,
    /// Numbers of the hunks, from 1.
    pub hunks: Vec<usize>,
}

impl fmt::Display for AppliedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out: usize = self.left_out.iter().map(|file| file.hunks.len()).sum();
        if self.hunks > 0 {
            let hunks = if self.hunks == 1 { "hunk" } else { "hunks" };
            write!(f, "{} of {} {hunks}", self.hunks.saturating_sub(left_out), self.hunks)?;
        }
        match (self.hunks, self.edited.len()) {
            (_, 0) => Ok(()),
            (0, 1) => f.write_str("the text was edited"),
            (0, files) => write!(f, "the text of {files} files was edited"),
            (_, 1) => f.write_str(", and the text of 1 file was edited"),
            (_, files) => write!(f, ", and the text of {files} files was edited"),
        }
    }
}

/// The user's approval of everything in a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TurnAllowed {
    /// The call whose request the user answered with this approval.
    pub call: CallId,
    /// The access until the end of the turn.
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

/// Reason for the end of the access that the user gave for a whole turn.
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
        f.write_str("the approval of everything in the turn has ended: ")?;
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
    /// The user, by an answer that matches the request.
    User,
    /// The user: the command is the user's own, and no call of the model.
    OwnCommand,
    /// An approval for the session that the user gave earlier.
    SessionGrant(GrantId),
    /// A rule in the user's settings.
    Configuration,
    /// Nobody answered in time.
    Deadline,
    /// Nobody: no front end can ask.
    NoFrontEnd,
    /// Nobody: the answer was invalid.
    BadAnswer,
    /// Nobody: the turn ended, or the access changed.
    Interrupted,
    /// Nobody: a person edited the plan, and another request follows.
    Edited,
    /// Nobody: a person wants to see the reply's other changes too, and another request follows.
    Together,
}
