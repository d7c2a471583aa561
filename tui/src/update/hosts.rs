//! Display of the person's answers to requests about hosts to which a running command connects.

use protocol::approval::ReviewDecision;
use protocol::event::ApprovalAnswered;

use crate::model::{AgentView, Look};

/// Reports the person's answer about a host. Returns false if the approval request was not about a host.
pub(super) fn answered(view: &mut AgentView, answered: &ApprovalAnswered) -> bool {
    let Some(host) = answered.id.and_then(|id| view.asked_hosts.remove(&id)) else { return false };
    let decision = match &answered.decision {
        ReviewDecision::Approved => "allowed for this command".to_owned(),
        ReviewDecision::ApprovedForSession { .. } => "allowed for the session".to_owned(),
        ReviewDecision::Denied { message: None }
        | ReviewDecision::ApprovedForTurn
        | ReviewDecision::ApprovedInPart { .. }
        | ReviewDecision::Filled { .. }
        | ReviewDecision::Cancelled => "not allowed".to_owned(),
        ReviewDecision::Denied { message: Some(word) } => format!("not allowed: {word}"),
        ReviewDecision::Abort => "not allowed; turn stopped".to_owned(),
    };
    let cause = answered.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    view.say(Look::Notice, &format!("{host}: {decision}{cause}"));
    true
}
