//! The words that every view of a log uses for approvals.

use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::DecidedBy;

pub(crate) const fn about(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Patch => "a change of files",
        AskKind::Exec => "a command",
        AskKind::Denied => "a command that was blocked",
        AskKind::Network => "the network",
        AskKind::Host => "a host that a running command connects to",
        AskKind::ExternalTool => "a call of an external tool",
        AskKind::Form => "a form that an MCP server asks for",
        AskKind::Fetch => "a web page",
        AskKind::Agent => "the access of a sub-agent",
        AskKind::Plan => "the execution of a plan",
    }
}

pub(crate) const fn decision(decision: &ReviewDecision) -> &'static str {
    match decision {
        ReviewDecision::Approved => "approved",
        ReviewDecision::ApprovedForSession { .. } => "approved for the session",
        ReviewDecision::ApprovedForTurn => "approved, like everything else in the turn",
        ReviewDecision::ApprovedInPart { .. } => "approved in part",
        ReviewDecision::Denied { .. } => "denied",
        ReviewDecision::Abort => "aborted",
        ReviewDecision::Filled { .. } => "filled in and sent",
        ReviewDecision::Cancelled => "cancelled",
    }
}

pub(crate) fn decided_by(by: DecidedBy) -> String {
    match by {
        DecidedBy::User => "the user".to_owned(),
        DecidedBy::OwnCommand => "the user, who typed the command".to_owned(),
        DecidedBy::SessionGrant(id) => format!("approval {id} for the session"),
        DecidedBy::Configuration => "the settings".to_owned(),
        DecidedBy::Deadline => "the deadline".to_owned(),
        DecidedBy::NoFrontEnd => "the supervisor, with no front end to ask".to_owned(),
        DecidedBy::BadAnswer => "the supervisor, after an invalid answer".to_owned(),
        DecidedBy::Interrupted => "the interruption".to_owned(),
        DecidedBy::Together => "the user, who wanted to see all changes of the reply".to_owned(),
        DecidedBy::Edited => "the user, who edited the plan".to_owned(),
    }
}
