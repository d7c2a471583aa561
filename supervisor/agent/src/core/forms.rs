//! Questions of MCP servers to a person: each is a form, which belongs to the call that the server carries out.
//!
//! An answer gives the server nothing but the values that the person sees before sending them. It widens no right.

use std::collections::BTreeMap;

use gate::approval::{FormRuling, FormSubject, JudgedAnswer, Question, secret_in};
use gate::modes::{Position, permits};
use gate::tools::{ExternalCall, ServedCall};
use ipc::form::FormField;
use ipc::id::{ApprovalId, CallId};
use ipc::mcp::{McpAnswer, McpForm};
use protocol::approval::ReviewDecision;
use protocol::event::{DecidedBy, NoticeCode};

use super::approvals::ABORTED;
use super::calls::Open;
use super::end::Ending;
use super::{Agent, Effect, EndReason, FormAsked};

/// The most characters of a server's words in a notice.
const MOST_WORDS: usize = 200;

/// The forms that somebody is asked to fill in.
#[derive(Debug, Default)]
pub(super) struct HeldForms {
    open: BTreeMap<ApprovalId, HeldForm>,
}

#[derive(Debug)]
struct HeldForm {
    question: u64,
    call: CallId,
    server: String,
    fields: Vec<FormField>,
    digest: String,
}

impl Agent {
    pub(super) fn on_form_asked(&mut self, asked: FormAsked) {
        let FormAsked { id: question, call, message, form } = asked;
        let Some(Open::Served(ServedCall::External(external))) = self.calls.open(call) else {
            return self.answer_form(question, McpAnswer::Cancelled);
        };
        let ExternalCall { server, tool, guest, .. } = external.clone();
        let fields = match self.askable(&message, form) {
            Ok(fields) => fields,
            Err(why) => {
                let words: String =
                    message.lines().next().unwrap_or_default().chars().take(MOST_WORDS).collect();
                let notice =
                    format!("a question of the MCP server {server} was declined: {why} (it asked: {words})");
                self.out.notice(NoticeCode::FormDeclined, &notice);
                return self.answer_form(question, McpAnswer::Declined);
            }
        };
        let access = guest.map(|guest| guest.access.clone());
        let subject =
            FormSubject { server: server.clone(), tool, access, message, fields: fields.clone(), question };
        let asks = Question {
            conversation: &self.config.conversation,
            agent: &self.config.id,
            call,
            standing: &self.seen,
            timeout: self.config.approvals.timeout,
            reason: None,
            more: 0,
        };
        let request = asks.about_form(subject);
        let held = HeldForm { question, call, server, fields, digest: request.digest().to_owned() };
        self.last_approval = self.last_approval.next();
        let id = self.last_approval;
        self.held_forms.open.insert(id, held);
        self.out.push(Effect::RequestApproval { id, request: Box::new(request) });
    }

    /// Returns the fields of a form that somebody may be asked for. The error says why nobody is.
    fn askable(&self, message: &str, form: McpForm) -> Result<Vec<FormField>, String> {
        let fields = match form {
            McpForm::Fields(fields) => fields,
            McpForm::Page => {
                return Err("it wants a web page to be opened, and forms alone are shown".to_owned());
            }
            McpForm::Unshown(why) => return Err(format!("its form cannot be shown: {why}")),
        };
        if let Some(found) = secret_in(message, &fields) {
            return Err(format!(
                "it seems to ask for a secret ({found:?}); give a server a secret with `env` in its table"
            ));
        }
        if !self.config.approvals.answerer {
            return Err("nobody is asked in this run".to_owned());
        }
        if !permits(Position::FIRST, self.seen.mode).keeps_approvals() {
            return Err(format!("nothing is asked in mode {}", self.seen.mode));
        }
        if self.replacement.is_awaited() {
            return Err("the access of the agent is being changed".to_owned());
        }
        Ok(fields)
    }

    /// Takes an answer to a form, and returns true; false if the request is about something else.
    pub(super) fn on_form_answer(&mut self, id: ApprovalId, answer: &JudgedAnswer) -> bool {
        let Some(held) = self.held_forms.open.remove(&id) else { return false };
        let decision = answer.decision.clone();
        match answer.clone().judge_form(&held.digest, &held.fields) {
            Ok(ruling) => {
                self.log_answer(held.call, Some(id), decision, DecidedBy::User, None);
                self.settle_form(held, ruling);
            }
            Err(why) => self.leave_form(id, &held, DecidedBy::BadAnswer, why),
        }
        true
    }

    fn settle_form(&mut self, held: HeldForm, ruling: FormRuling) {
        let answer = match &ruling {
            FormRuling::Sent(values) => McpAnswer::Accepted(values.clone()),
            FormRuling::Declined(_) => McpAnswer::Declined,
            FormRuling::Cancelled | FormRuling::Aborted => McpAnswer::Cancelled,
        };
        self.answer_form(held.question, answer);
        match ruling {
            FormRuling::Sent(_) | FormRuling::Declined(None) | FormRuling::Cancelled => {}
            FormRuling::Declined(Some(message)) => {
                let text = format!(
                    "The user declined a question of the server {}. They say: {message}",
                    held.server
                );
                self.on_remark(held.call, text);
            }
            FormRuling::Aborted => {
                self.stop(Ending::because(EndReason::Aborted, ABORTED));
            }
        }
    }

    /// A form is over without an answer that counts; false if the request is about something else.
    pub(super) fn on_form_lapsed(&mut self, id: ApprovalId, by: DecidedBy, cause: &str) -> bool {
        let Some(held) = self.held_forms.open.remove(&id) else { return false };
        self.leave_form(id, &held, by, cause.to_owned());
        true
    }

    /// Takes every form back.
    pub(super) fn withdraw_forms(&mut self, by: DecidedBy, cause: &str) {
        self.end_forms(by, cause, |_| true);
    }

    /// Takes the forms of a call back that has ended.
    pub(super) fn end_forms_of(&mut self, call: CallId) {
        self.end_forms(DecidedBy::Interrupted, "the call has ended", |held| held.call == call);
    }

    fn end_forms(&mut self, by: DecidedBy, cause: &str, is_over: impl Fn(&HeldForm) -> bool) {
        let over: Vec<_> = self.held_forms.open.extract_if(.., |_, held| is_over(held)).collect();
        for (id, held) in over {
            self.leave_form(id, &held, by, cause.to_owned());
        }
    }

    fn leave_form(&mut self, id: ApprovalId, held: &HeldForm, by: DecidedBy, cause: String) {
        self.answer_form(held.question, McpAnswer::Cancelled);
        self.log_answer(held.call, Some(id), ReviewDecision::Cancelled, by, Some(cause));
    }

    fn answer_form(&mut self, id: u64, answer: McpAnswer) {
        self.out.push(Effect::AnswerForm { id, answer });
    }
}
