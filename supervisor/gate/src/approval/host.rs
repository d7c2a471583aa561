//! Requests about a host that is not on the list of allowed hosts, and the check of the answer.

use ipc::id::{AgentId, ConversationId, Generation};
use ipc::rights::{Grant, HostRule};
use ipc::text::hexadecimal;
use protocol::approval::{AskKind, HostApprovalParams, ReviewDecision, ServerRequest, SessionScope};
use sha2::{Digest, Sha256};

use super::{JudgedAnswer, Question};

/// Maximum number of characters of a program's name that a request shows.
const LONGEST: usize = 64;

/// Host that a command tries to connect to and that is not allowed yet. The connections wait for the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSubject {
    pub host: HostRule,
    /// Name of the connecting program, as its process claims.
    pub program: String,
    pub command: String,
    /// Generation of the worker whose gateway asks. Each gateway numbers its questions.
    pub generation: Generation,
    pub question: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRuling {
    /// The command may connect to the host until the command ends.
    Once,
    /// As `Once`, and the host joins the session's list of allowed hosts.
    Session,
    Denied(Option<String>),
    /// The connections are refused, and the turn ends.
    Aborted,
}

impl HostSubject {
    /// Returns the digest that identifies the host and the question in a request and its answer.
    pub fn digest(&self, conversation: &ConversationId, agent: &AgentId) -> String {
        let Self { host, generation, question, .. } = self;
        let mut hash = Sha256::new();
        let numbers = [generation.to_string(), question.to_string()];
        let [generation, question] = &numbers;
        for part in [conversation.as_str(), &agent.to_string(), generation, question, &host.to_string()] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        }
        hexadecimal(&hash.finalize())
    }
}

impl Question<'_> {
    pub fn about_host(self, subject: &HostSubject, grant: Grant) -> ServerRequest {
        ServerRequest::HostApproval(HostApprovalParams {
            conversation_id: self.conversation.clone(),
            agent: self.agent.clone(),
            call_id: self.call,
            command: subject.command.clone(),
            program: subject.program.escape_debug().take(LONGEST).collect(),
            host: subject.host.clone(),
            digest: subject.digest(self.conversation, self.agent),
            grant,
            rights: self.standing.summary().into(),
            timeout_ms: self.timeout_ms(),
            reason: self.reason,
        })
    }
}

impl JudgedAnswer {
    /// Checks the answer against the question, whose digest is `digest`. The error has the reason why the answer is
    /// invalid; the connections are refused then.
    pub fn judge_host(self, digest: &str) -> Result<HostRuling, String> {
        if self.kind != AskKind::Host {
            return Err("the answer belongs to another kind of request".to_owned());
        }
        if self.digest.is_some_and(|said| said != digest) {
            return Err("the answer belongs to another question: its digest differs".to_owned());
        }
        Ok(match self.decision {
            ReviewDecision::Approved => HostRuling::Once,
            ReviewDecision::ApprovedForSession { scope: SessionScope::Network } => HostRuling::Session,
            ReviewDecision::ApprovedForSession { .. } => {
                return Err("a host can be allowed for the session only with the scope `network`".to_owned());
            }
            ReviewDecision::ApprovedForTurn => {
                return Err("an approval of everything in a turn does not allow hosts".to_owned());
            }
            ReviewDecision::ApprovedInPart { .. } => {
                return Err("only a change of files can be approved in part".to_owned());
            }
            ReviewDecision::Denied { message } => HostRuling::Denied(message),
            ReviewDecision::Abort => HostRuling::Aborted,
            ReviewDecision::Filled { .. } | ReviewDecision::Cancelled => {
                return Err("this answer fits only a form of an MCP server".to_owned());
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(host: &str, generation: u32, question: u64) -> HostSubject {
        HostSubject {
            host: host.parse().unwrap(),
            program: "curl".to_owned(),
            command: "curl".to_owned(),
            generation: Generation(generation),
            question,
        }
    }

    #[test]
    fn a_digest_is_one_of_everything_that_an_answer_is_for() {
        let digest = |session: &str, host, generation, question| {
            subject(host, generation, question).digest(&session.into(), &AgentId::root())
        };
        let digests = [
            digest("s", "a.example", 1, 11),
            digest("s", "a.example", 11, 1),
            digest("s", "a.example:80", 1, 11),
            digest("s", "b.example", 1, 11),
            digest("t", "a.example", 1, 11),
        ];
        for (n, one) in digests.iter().enumerate() {
            assert!(one.len() == 64 && !digests[..n].contains(one), "{n}");
        }
    }

    #[test]
    fn an_answer_counts_for_its_own_question_alone() {
        let judged = |kind, decision, digest: Option<&str>| {
            JudgedAnswer { kind, decision, digest: digest.map(str::to_owned) }.judge_host("ab")
        };
        let session = |scope| ReviewDecision::ApprovedForSession { scope };
        let network = session(SessionScope::Network);
        for (decision, expected) in [
            (ReviewDecision::Approved, HostRuling::Once),
            (network.clone(), HostRuling::Session),
            (ReviewDecision::DENIED, HostRuling::Denied(None)),
            (ReviewDecision::Abort, HostRuling::Aborted),
        ] {
            assert_eq!(judged(AskKind::Host, decision.clone(), None), Ok(expected.clone()));
            assert_eq!(judged(AskKind::Host, decision, Some("ab")), Ok(expected));
        }
        assert!(judged(AskKind::Host, ReviewDecision::Approved, Some("abc")).is_err());
        for kind in AskKind::ALL.iter().filter(|kind| **kind != AskKind::Host) {
            assert!(judged(*kind, network.clone(), Some("ab")).is_err(), "{kind:?}");
        }
        for scope in [SessionScope::Exact, SessionScope::GrantRoot] {
            assert!(judged(AskKind::Host, session(scope.clone()), None).is_err(), "{scope:?}");
        }
    }
}
