use ipc::id::{ApprovalId, CallId};
use protocol::approval::ReviewDecision;
use protocol::event::{ApprovalAnswered, DecidedBy, EventKind, NoticeCode, ObservedBy};

use super::Effect;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    effects: Vec<Effect>,
    /// Number of effects whose events the ledger of the conversation has read.
    read: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn log(&mut self, kind: EventKind) {
        self.log_seen_by(ObservedBy::Supervisor, kind);
    }

    pub(super) fn log_seen_by(&mut self, observed_by: ObservedBy, kind: EventKind) {
        self.effects.push(Effect::Log { kind, observed_by });
    }

    pub(super) fn notice(&mut self, code: NoticeCode, message: &str) {
        self.log(EventKind::Notice { code, message: message.to_owned() });
    }

    /// Logs the answer to a request about a call, and closes the request with this `id` if there is one.
    pub(super) fn log_answer(
        &mut self,
        call: CallId,
        id: Option<ApprovalId>,
        decision: ReviewDecision,
        by: DecidedBy,
        cause: Option<String>,
    ) {
        self.log_answered(ApprovalAnswered { id, call, decision, by, cause, in_part: None });
    }

    pub(super) fn log_answered(&mut self, answered: ApprovalAnswered) {
        let id = answered.id;
        self.log(EventKind::ApprovalAnswered(answered));
        if let Some(id) = id {
            self.push(Effect::CloseApproval(id));
        }
    }

    pub(super) fn unread(&mut self) -> impl Iterator<Item = &EventKind> {
        let from = std::mem::replace(&mut self.read, self.effects.len());
        self.effects[from..].iter().filter_map(|effect| match effect {
            Effect::Log { kind, .. } => Some(kind),
            _ => None,
        })
    }

    pub(super) fn take(&mut self) -> Vec<Effect> {
        self.read = 0;
        std::mem::take(&mut self.effects)
    }
}
