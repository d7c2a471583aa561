//! The one judge of answers: an answer counts if it is one to exactly what was asked.

use protocol::approval::{AskKind, ReviewDecision};

use super::{Scope, Subject};
use crate::judgement::{Ask, StandingRights};

/// An answer as a front end gave it.
#[derive(Clone, Debug)]
pub struct JudgedAnswer {
    /// The kind of request that it is an answer to.
    pub kind: AskKind,
    pub decision: ReviewDecision,
    /// The digest of what was decided on, where the front end repeats it.
    pub digest: Option<String>,
}

/// An answer that counts.
#[derive(Clone, Debug)]
pub enum Ruling {
    /// The subject is carried out; the scope says how far the approval reaches beyond it.
    Approved(Option<Scope>),
    /// It is not; the message is for the model.
    Denied(Option<String>),
    /// It is not, and the turn ends.
    Aborted,
}

impl JudgedAnswer {
    /// Judges it against what was asked; the error says why it does not count, which denies the call.
    pub fn judge(self, ask: &Ask, subject: &Subject, standing: &StandingRights) -> Result<Ruling, String> {
        if self.kind != ask.kind {
            return Err("the answer is one to another kind of request".to_owned());
        }
        if self.digest.is_some_and(|digest| digest != subject.digest()) {
            return Err("the answer is one to another effect: its digest differs".to_owned());
        }
        Ok(match self.decision {
            ReviewDecision::Approved => Ruling::Approved(None),
            ReviewDecision::ApprovedForSession { scope } => {
                Ruling::Approved(Some(Scope::of(scope, ask, subject, standing)?))
            }
            ReviewDecision::Denied { message } => Ruling::Denied(message),
            ReviewDecision::Abort => Ruling::Aborted,
        })
    }
}
