//! Pieces of the model's replies in `--output stream-json`. The session log does not contain these pieces.

use ipc::id::{AgentId, ConversationId};
use protocol::event::SCHEMA;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct OutputDelta<'a> {
    v: u32,
    session: &'a ConversationId,
    agent: &'a AgentId,
    r#type: &'static str,
    data: DeltaPiece<'a>,
}

#[derive(Debug, Serialize)]
struct DeltaPiece<'a> {
    text: &'a str,
}

impl<'a> OutputDelta<'a> {
    pub(super) const fn text(session: &'a ConversationId, agent: &'a AgentId, text: &'a str) -> Self {
        Self { v: SCHEMA, session, agent, r#type: "text_delta", data: DeltaPiece { text } }
    }
}
