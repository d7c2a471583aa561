//! Checks of answers to approval requests: an answer counts only if it matches the exact request.

use protocol::approval::{AskKind, ReviewDecision, TurnAccess};

use super::{Scope, Subject, SubjectPart};
use crate::judgement::{Ask, StandingRights};

#[derive(Clone, Debug)]
pub struct JudgedAnswer {
    pub kind: AskKind,
    pub decision: ReviewDecision,
    /// Digest of the approved action; `None` if the answer does not repeat it.
    pub digest: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Ruling {
    Approved(Option<Scope>),
    /// Carry out the action with this access, which the agent has for the rest of the turn.
    ForTurn(TurnAccess),
    /// Carry out this part of the action and leave the rest.
    InPart(Box<SubjectPart>),
    /// Do not carry out the action. The text is a message to the model, if the person wrote one.
    Denied(Option<String>),
    Aborted,
}

impl JudgedAnswer {
    /// Checks the answer. `turn` is the access for the rest of the turn; `None` if the request does not offer it. The
    /// error has the reason why the answer is invalid; the call is denied then.
    pub fn judge(
        self,
        ask: &Ask,
        subject: &Subject,
        standing: &StandingRights,
        turn: Option<TurnAccess>,
    ) -> Result<Ruling, String> {
        if self.kind != ask.kind {
            return Err("the answer belongs to another kind of request".to_owned());
        }
        if self.digest.as_ref().is_some_and(|digest| *digest != subject.digest()) {
            return Err("the answer belongs to another action: its digest differs".to_owned());
        }
        Ok(match self.decision {
            ReviewDecision::Approved => Ruling::Approved(None),
            ReviewDecision::ApprovedForSession { scope } => {
                Ruling::Approved(Some(Scope::of(scope, ask, subject, standing)?))
            }
            ReviewDecision::ApprovedForTurn => {
                let nothing = "this request cannot be answered by approving everything in the turn";
                Ruling::ForTurn(turn.ok_or_else(|| nothing.to_owned())?)
            }
            ReviewDecision::ApprovedInPart { part } => {
                Ruling::InPart(Box::new(subject.part(&part, self.digest.as_deref())?))
            }
            ReviewDecision::Denied { message } => Ruling::Denied(message),
            ReviewDecision::Abort => Ruling::Aborted,
            ReviewDecision::Filled { .. } | ReviewDecision::Cancelled => {
                return Err("this answer fits only a form of an MCP server".to_owned());
            }
        })
    }
}
