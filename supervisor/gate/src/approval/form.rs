//! Forms that an MCP server asks a person to fill in, and the check of the answer.

use ipc::form::FormField;
use ipc::id::{AgentId, CallId, ConversationId};
use ipc::text::hexadecimal;
use protocol::approval::{
    AskKind, FormValues, ReviewDecision, ServerAccess, ServerFormParams, ServerRequest, check_all,
};
use sha2::{Digest, Sha256};

use super::{JudgedAnswer, Question};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormSubject {
    pub server: String,
    pub tool: String,
    /// Access of the server; `None` if the server is not confined.
    pub access: Option<ServerAccess>,
    pub message: String,
    pub fields: Vec<FormField>,
    /// Number of the form, which no other form of this session has.
    pub question: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormRuling {
    /// The person filled in the form. The text is a JSON object with the entered values, for the server.
    Sent(String),
    /// The person declined, and the server is informed. The text is a message to the model, if the person wrote one.
    Declined(Option<String>),
    /// No answer was given, and the server is informed.
    Cancelled,
    /// Nobody answered, the server is informed, and the turn ends.
    Aborted,
}

impl FormSubject {
    /// Returns the digest that identifies the form in a request and its answer.
    pub fn digest(&self, conversation: &ConversationId, agent: &AgentId, call: CallId) -> String {
        let fields = serde_json::to_string(&self.fields).unwrap_or_default();
        let numbers = [agent.to_string(), call.to_string(), self.question.to_string()];
        let [agent, call, question] = &numbers;
        let mut hash = Sha256::new();
        for part in [conversation.as_str(), agent, call, question, &self.server, &self.message, &fields] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        }
        hexadecimal(&hash.finalize())
    }
}

impl Question<'_> {
    pub fn about_form(self, subject: FormSubject) -> ServerRequest {
        let digest = subject.digest(self.conversation, self.agent, self.call);
        let timeout_ms = self.timeout_ms();
        let FormSubject { server, tool, access, message, fields, question: _ } = subject;
        ServerRequest::ServerForm(ServerFormParams {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            server,
            tool,
            access,
            message,
            fields,
            digest,
            timeout_ms,
            reason: None,
        })
    }
}

impl JudgedAnswer {
    /// Checks the answer against the form, whose digest is `digest`. The error has the reason why the answer is
    /// invalid; nothing is sent to the server then.
    pub fn judge_form(self, digest: &str, fields: &[FormField]) -> Result<FormRuling, String> {
        if self.kind != AskKind::Form {
            return Err("the answer belongs to another kind of request".to_owned());
        }
        if self.digest.is_some_and(|said| said != digest) {
            return Err("the answer belongs to another form: its digest differs".to_owned());
        }
        match self.decision {
            // A form without a field that has to be filled in is a plain confirmation.
            ReviewDecision::Approved => sent(fields, &FormValues::new()),
            ReviewDecision::Filled { values } => sent(fields, &values),
            ReviewDecision::ApprovedForSession { .. } => {
                Err("a form is filled in for one request, not for the session".to_owned())
            }
            ReviewDecision::ApprovedForTurn => {
                Err("a form is filled in for one request, not for the turn".to_owned())
            }
            ReviewDecision::ApprovedInPart { .. } => {
                Err("only a change of files can be approved in part".to_owned())
            }
            ReviewDecision::Denied { message } => Ok(FormRuling::Declined(message)),
            ReviewDecision::Cancelled => Ok(FormRuling::Cancelled),
            ReviewDecision::Abort => Ok(FormRuling::Aborted),
        }
    }
}

fn sent(fields: &[FormField], values: &FormValues) -> Result<FormRuling, String> {
    check_all(fields, values)?;
    serde_json::to_string(values).map(FormRuling::Sent).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use ipc::form::FieldKind;
    use protocol::approval::{FormValue, SessionScope};

    use super::*;

    fn field(name: &str, required: bool) -> FormField {
        let kind = FieldKind::YesNo { default: None };
        FormField { name: name.to_owned(), title: None, about: String::new(), required, kind }
    }

    fn subject(server: &str, message: &str, name: &str, question: u64) -> FormSubject {
        FormSubject {
            server: server.to_owned(),
            tool: "t".to_owned(),
            access: None,
            message: message.to_owned(),
            fields: vec![field(name, true)],
            question,
        }
    }

    #[test]
    fn a_digest_is_one_of_everything_that_an_answer_is_for() {
        let digest = |session: &str, call, subject: &FormSubject| {
            subject.digest(&session.into(), &AgentId::root(), CallId(call))
        };
        let digests = [
            digest("s", 1, &subject("d", "m", "a", 11)),
            digest("s", 11, &subject("d", "m", "a", 1)),
            digest("s", 1, &subject("d", "m", "b", 11)),
            digest("s", 1, &subject("dm", "", "a", 11)),
            digest("s", 1, &subject("e", "m", "a", 11)),
            digest("t", 1, &subject("d", "m", "a", 11)),
        ];
        for (n, one) in digests.iter().enumerate() {
            assert!(one.len() == 64 && !digests[..n].contains(one), "{n}");
        }
    }

    #[test]
    fn an_answer_counts_for_its_own_form_alone() {
        let filled = |name: &str, value: FormValue| ReviewDecision::Filled {
            values: FormValues::from([(name.to_owned(), value)]),
        };
        let judged = |kind, decision, digest: Option<&str>, required| {
            let answer = JudgedAnswer { kind, decision, digest: digest.map(str::to_owned) };
            answer.judge_form("ab", &[field("a", required)])
        };
        let yes = || filled("a", FormValue::YesNo(true));
        let sent = |json: &str| Ok(FormRuling::Sent(json.to_owned()));
        assert_eq!(judged(AskKind::Form, yes(), Some("ab"), true), sent(r#"{"a":true}"#));
        assert_eq!(judged(AskKind::Form, yes(), None, true), sent(r#"{"a":true}"#));
        assert_eq!(judged(AskKind::Form, ReviewDecision::Approved, None, false), sent("{}"));
        for (decision, expected) in [
            (ReviewDecision::DENIED, FormRuling::Declined(None)),
            (ReviewDecision::Cancelled, FormRuling::Cancelled),
            (ReviewDecision::Abort, FormRuling::Aborted),
        ] {
            assert_eq!(judged(AskKind::Form, decision, None, true), Ok(expected));
        }
        let session = ReviewDecision::ApprovedForSession { scope: SessionScope::Exact };
        for bad in [
            ReviewDecision::Approved,
            session,
            filled("b", FormValue::YesNo(true)),
            filled("a", FormValue::Text("yes".to_owned())),
            ReviewDecision::Filled { values: FormValues::new() },
        ] {
            assert!(judged(AskKind::Form, bad.clone(), Some("ab"), true).is_err(), "{bad:?}");
        }
        assert!(judged(AskKind::Form, yes(), Some("abc"), true).is_err());
        for kind in AskKind::ALL.iter().filter(|kind| **kind != AskKind::Form) {
            assert!(judged(*kind, yes(), Some("ab"), true).is_err(), "{kind:?}");
        }
    }
}
