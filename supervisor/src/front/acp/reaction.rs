//! Reactions of the server to an event of a session: messages to the client, and actions on the session.

use agent_client_protocol_schema::v1::SessionUpdate;
use ipc::id::AgentId;
use protocol::approval::ServerRequest;
use protocol::frontend::UserActionKind;
use protocol::rpc::{ErrorObject, Passing, RequestId};
use serde::Serialize;
use serde_json::value::RawValue;

use super::draft::Draft;
use crate::front::wire::pending::Asked;

pub(super) enum Reaction {
    Update(Box<SessionUpdate>),
    /// A piece of output, which may be sent later, joined with the next piece.
    Piece(Passing),
    /// The result of a client's request.
    Answer(RequestId, Box<RawValue>),
    Refuse(RequestId, ErrorObject),
    Act(Option<AgentId>, UserActionKind),
    AskAgain(Asked, Box<ServerRequest>),
    /// A question to the person: may this text be sent?
    AskToSend(Box<Draft>),
}

pub(super) fn answer(id: RequestId, result: &impl Serialize) -> Reaction {
    match serde_json::value::to_raw_value(result) {
        Ok(result) => Reaction::Answer(id, result),
        Err(error) => Reaction::Refuse(id, protocol::rpc::ErrorWord::InternalError.because(error)),
    }
}
