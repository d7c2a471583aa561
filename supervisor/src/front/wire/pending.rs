//! The approval requests that were sent to a front end and are not answered yet.

use std::collections::BTreeMap;

use ipc::id::{AgentId, ApprovalId, ConversationId};
use protocol::approval::{ApprovalAnswer, ServerRequest};
use protocol::frontend::{UserAction, UserActionKind};
use protocol::rpc::{self, RequestId, ResponseOutcome};

#[derive(Debug, Default)]
pub(crate) struct Pending(BTreeMap<RequestId, Waiting>);

#[derive(Debug)]
struct Waiting {
    asked: Asked,
    request: Box<ServerRequest>,
}

/// The identity of an approval in its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) conversation: ConversationId,
    pub(crate) agent: AgentId,
    pub(crate) id: ApprovalId,
}

impl Asked {
    /// Returns the id of the JSON-RPC request for the approval.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId::of_approval(&self.conversation, &self.agent, self.id)
    }

    /// Returns the action that answers the approval. It names the agent, because each agent numbers its own approvals.
    pub(crate) fn answered(self, answer: ApprovalAnswer) -> UserAction {
        let Self { conversation, agent, id } = self;
        let kind = UserActionKind::Answer { id, answer };
        UserAction { conversation_id: conversation, agent: Some(agent), kind }
    }

    fn failed(self, cause: String) -> UserAction {
        self.answered(ApprovalAnswer::Failed { cause })
    }
}

impl Pending {
    pub(crate) fn ask(
        &mut self,
        asked: Asked,
        request: Box<ServerRequest>,
    ) -> Result<String, Box<UserAction>> {
        let line = rpc::request(&asked.request_id(), &request);
        self.record(line, asked, request)
    }

    /// Records an approval request and returns `line`. If `line` is an error, returns the denial of the request.
    pub(in crate::front) fn record(
        &mut self,
        line: serde_json::Result<String>,
        asked: Asked,
        request: Box<ServerRequest>,
    ) -> Result<String, Box<UserAction>> {
        match line {
            Ok(line) => {
                self.0.insert(asked.request_id(), Waiting { asked, request });
                Ok(line)
            }
            Err(error) => Err(asked.failed(format!("the request cannot be serialised: {error}")).into()),
        }
    }

    /// Returns the action for a response, and forgets the request. `None` if no request with this id waits.
    pub(crate) fn answer(&mut self, id: &RequestId, outcome: &ResponseOutcome) -> Option<UserAction> {
        let (asked, request) = self.take(id)?;
        Some(asked.answered(rpc::answer(&request, outcome)))
    }

    /// Removes and returns the request with this id, so that it is answered only once. `None` if no such request waits.
    pub(in crate::front) fn take(&mut self, id: &RequestId) -> Option<(Asked, Box<ServerRequest>)> {
        self.0.remove(id).map(|Waiting { asked, request }| (asked, request))
    }

    /// Removes a request that is no longer needed. Returns true if the request was still open.
    pub(crate) fn close(&mut self, asked: &Asked) -> bool {
        self.0.remove(&asked.request_id()).is_some()
    }

    pub(crate) fn forget(&mut self, conversation: &ConversationId) {
        self.0.retain(|_, waiting| waiting.asked.conversation != *conversation);
    }

    /// Removes all requests and returns the actions that deny them for this reason.
    pub(crate) fn fail_all(&mut self, cause: &str) -> Vec<UserAction> {
        let waiting = std::mem::take(&mut self.0).into_values();
        waiting.map(|waiting| waiting.asked.failed(cause.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use protocol::approval::{ExternalToolApprovalParams, ExternalToolApprovalResponse, ReviewDecision};
    use serde::ser::Error as _;

    use super::*;

    fn asked(agent: &str) -> Asked {
        Asked { conversation: "c".into(), agent: agent.into(), id: ApprovalId(1) }
    }

    fn request(agent: &str) -> Box<ServerRequest> {
        Box::new(ServerRequest::ExternalToolApproval(ExternalToolApprovalParams {
            conversation_id: "c".into(),
            agent: agent.into(),
            call_id: ipc::id::CallId(1),
            server: "s".to_owned(),
            tool: "t".to_owned(),
            json: "{}".to_owned(),
            access: None,
            definition: None,
            digest: "d".to_owned(),
            timeout_ms: 1,
            reason: None,
        }))
    }

    fn approval() -> ResponseOutcome {
        let result = r#"{"decision":"approved"}"#.to_owned();
        ResponseOutcome::Result(serde_json::value::RawValue::from_string(result).unwrap())
    }

    fn approved() -> ApprovalAnswer {
        let decision = ReviewDecision::Approved;
        ApprovalAnswer::ExternalTool(ExternalToolApprovalResponse { decision, digest: None })
    }

    #[test]
    fn two_agents_with_the_same_number_are_asked_and_answered_apart() {
        let mut pending = Pending::default();
        for agent in ["1", "1.2"] {
            let line = pending.ask(asked(agent), request(agent)).unwrap();
            assert!(line.contains(&format!(r#""id":"c:{agent}:1""#)), "{line}");
        }
        let answer = pending.answer(&"c:1.2:1".into(), &approval());
        assert_eq!(answer, Some(asked("1.2").answered(approved())));
        assert_eq!(pending.answer(&"c:1.2:1".into(), &approval()), None);
        assert_eq!(pending.answer(&"c:1".into(), &approval()), None);
        assert_eq!(pending.answer(&"c:1:1".into(), &approval()), Some(asked("1").answered(approved())));
    }

    #[test]
    fn a_request_that_cannot_be_serialised_is_denied_and_not_waited_for() {
        let mut pending = Pending::default();
        let error = Err(serde_json::Error::custom("no JSON"));
        let denied = pending.record(error, asked("1"), request("1")).unwrap_err();
        assert_eq!(*denied, asked("1").failed("the request cannot be serialised: no JSON".to_owned()));
        assert_eq!(pending.answer(&"c:1:1".into(), &approval()), None);
    }
}
