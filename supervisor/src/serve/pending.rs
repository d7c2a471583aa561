//! The approvals that a front end was asked for, until it answers, or nobody waits any more.

use std::collections::BTreeMap;

use ipc::approval::{ApprovalAnswer, ServerRequest};
use ipc::frontend::UserActionKind;
use ipc::id::{ApprovalId, ConversationId};
use ipc::rpc::{self, Outcome, RequestId};

/// Requests that wait for their response.
#[derive(Debug, Default)]
pub(crate) struct Pending(BTreeMap<RequestId, Waiting>);

#[derive(Debug)]
struct Waiting {
    conversation: ConversationId,
    id: ApprovalId,
    request: Box<ServerRequest>,
}

/// What an answer is for a conversation.
pub(crate) type Answer = (ConversationId, UserActionKind);

/// The id of the request that asks for an approval: a conversation's own number is nobody else's.
pub(crate) fn request_id(conversation: &ConversationId, id: ApprovalId) -> RequestId {
    RequestId::from(format!("{conversation}:{id}").as_str())
}

impl Pending {
    /// The line that asks; where there can be none, the answer that it then has.
    pub(crate) fn ask(
        &mut self,
        conversation: ConversationId,
        id: ApprovalId,
        request: Box<ServerRequest>,
    ) -> Result<String, Answer> {
        let named = request_id(&conversation, id);
        match rpc::request(&named, &request) {
            Ok(line) => {
                self.0.insert(named, Waiting { conversation, id, request });
                Ok(line)
            }
            Err(error) => Err(failed(conversation, id, format!("the request cannot be serialised: {error}"))),
        }
    }

    /// What a response means, once; a response to nothing that waits means nothing.
    pub(crate) fn answer(&mut self, id: &RequestId, outcome: &Outcome) -> Option<Answer> {
        let Waiting { conversation, id, request } = self.0.remove(id)?;
        let answer = rpc::answer(&request, outcome);
        Some((conversation, UserActionKind::Answer { id, answer }))
    }

    /// Nobody waits for it any more.
    pub(crate) fn close(&mut self, conversation: &ConversationId, id: ApprovalId) {
        self.0.remove(&request_id(conversation, id));
    }

    /// Nobody waits for anything of a conversation any more.
    pub(crate) fn forget(&mut self, conversation: &ConversationId) {
        self.0.retain(|_, waiting| waiting.conversation != *conversation);
    }

    /// Whoever was asked is gone: each request is answered with that.
    pub(crate) fn fail_all(&mut self, cause: &str) -> Vec<Answer> {
        let waiting = std::mem::take(&mut self.0).into_values();
        waiting.map(|waiting| failed(waiting.conversation, waiting.id, cause.to_owned())).collect()
    }
}

fn failed(conversation: ConversationId, id: ApprovalId, cause: String) -> Answer {
    (conversation, UserActionKind::Answer { id, answer: ApprovalAnswer::Failed { cause } })
}
