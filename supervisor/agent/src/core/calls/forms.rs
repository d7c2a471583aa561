//! Questions of MCP servers to a person. Each question is a form that belongs to an open call.
//!
//! The MCP server gets only the values that the person sees before sending them. An answer gives the server no access.

use std::collections::BTreeMap;

use gate::approval::{FormRuling, JudgedAnswer, secret_in};
use gate::modes::{Position, permits};
use ipc::form::FormField;
use ipc::id::{ApprovalId, CallId};
use ipc::mcp::{McpAnswer, McpForm};
use protocol::approval::ReviewDecision;
use protocol::event::DecidedBy;

use super::answered::Answered;
use crate::core::Effect;
use crate::core::outbox::Outbox;
use crate::core::rights::RightsState;

#[derive(Debug, Default)]
pub(super) struct HeldForms {
    open: BTreeMap<ApprovalId, HeldForm>,
}

#[derive(Debug)]
pub(super) struct HeldForm {
    pub(super) question: u64,
    pub(super) call: CallId,
    pub(super) server: String,
    pub(super) fields: Vec<FormField>,
    pub(super) digest: String,
}

impl HeldForms {
    pub(super) fn hold(&mut self, id: ApprovalId, held: HeldForm) {
        self.open.insert(id, held);
    }

    /// Handles an answer to a form. Returns `None` if no open form has this id.
    pub(super) fn on_answer(
        &mut self,
        id: ApprovalId,
        answer: &JudgedAnswer,
        out: &mut Outbox,
    ) -> Option<Answered> {
        let held = self.open.remove(&id)?;
        let decision = answer.decision.clone();
        Some(match answer.clone().judge_form(&held.digest, &held.fields) {
            Ok(ruling) => {
                out.log_answer(held.call, Some(id), decision, DecidedBy::User, None);
                settle(held, ruling, out)
            }
            Err(why) => {
                leave(id, &held, DecidedBy::BadAnswer, why, out);
                Answered::Settled
            }
        })
    }

    /// Handles the end of a form without a valid answer. Returns false if no open form has this id.
    pub(super) fn on_lapsed(&mut self, id: ApprovalId, by: DecidedBy, cause: &str, out: &mut Outbox) -> bool {
        let Some(held) = self.open.remove(&id) else { return false };
        leave(id, &held, by, cause.to_owned(), out);
        true
    }

    pub(super) fn withdraw(&mut self, by: DecidedBy, cause: &str, out: &mut Outbox) {
        self.end(by, cause, |_| true, out);
    }

    /// Withdraws the forms of a call that has ended.
    pub(super) fn end_call(&mut self, call: CallId, out: &mut Outbox) {
        self.end(DecidedBy::Interrupted, "the call has ended", |held| held.call == call, out);
    }

    fn end(&mut self, by: DecidedBy, cause: &str, is_over: impl Fn(&HeldForm) -> bool, out: &mut Outbox) {
        let over: Vec<_> = self.open.extract_if(.., |_, held| is_over(held)).collect();
        for (id, held) in over {
            leave(id, &held, by, cause.to_owned(), out);
        }
    }
}

fn settle(held: HeldForm, ruling: FormRuling, out: &mut Outbox) -> Answered {
    let answer = match &ruling {
        FormRuling::Sent(values) => McpAnswer::Accepted(values.clone()),
        FormRuling::Declined(_) => McpAnswer::Declined,
        FormRuling::Cancelled | FormRuling::Aborted => McpAnswer::Cancelled,
    };
    out.push(Effect::AnswerForm { id: held.question, answer });
    match ruling {
        FormRuling::Sent(_) | FormRuling::Declined(None) | FormRuling::Cancelled => Answered::Settled,
        FormRuling::Declined(Some(message)) => {
            let text =
                format!("The user declined a question of the server {}. They say: {message}", held.server);
            Answered::Remark(held.call, text)
        }
        FormRuling::Aborted => Answered::Aborted,
    }
}

fn leave(id: ApprovalId, held: &HeldForm, by: DecidedBy, cause: String, out: &mut Outbox) {
    out.push(Effect::AnswerForm { id: held.question, answer: McpAnswer::Cancelled });
    out.log_answer(held.call, Some(id), ReviewDecision::Cancelled, by, Some(cause));
}

/// Returns the fields of a form that the person can be asked to fill in. An `Err` says why nobody is asked.
pub(super) fn askable(
    message: &str,
    form: McpForm,
    answerer: bool,
    rights: &RightsState,
) -> Result<Vec<FormField>, String> {
    let fields = match form {
        McpForm::Fields(fields) => fields,
        McpForm::Page => {
            return Err("the server wants a web page to be opened, and Bailiwick shows only forms".to_owned());
        }
        McpForm::Unshown(why) => return Err(format!("the form cannot be shown: {why}")),
    };
    if let Some(found) = secret_in(message, &fields) {
        return Err(format!(
            "the form seems to ask for a secret ({found:?}); give a server secrets with `env` in the server's table of config.toml"
        ));
    }
    if !answerer {
        return Err("nobody can be asked in this run".to_owned());
    }
    if !permits(Position::FIRST, rights.seen().mode()).keeps_approvals() {
        return Err(format!("nothing is asked in mode {}", rights.seen().mode()));
    }
    if rights.is_awaited() {
        return Err("the access of the agent is being changed".to_owned());
    }
    Ok(fields)
}
