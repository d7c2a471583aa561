//! The client's requests that wait for events of a session.

use agent_client_protocol_schema::v1::{PromptResponse, SessionUpdate, StopReason};
use ipc::id::AgentId;
use ipc::image::Image;
use ipc::rights::Network;
use protocol::approval::ApprovalMode;
use protocol::event::{EndReason, TurnFinished};
use protocol::rpc::{ErrorObject, ErrorWord, RequestId};

use super::draft::{self, Draft};
use super::reaction::{Reaction, answer};

/// A client's request to open a session, which is answered when the session has begun.
pub(super) struct Opening {
    pub(super) id: RequestId,
    pub(super) kind: OpeningKind,
    pub(super) proposals: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpeningKind {
    New,
    Load,
    Resume,
}

/// A prompt that is not answered yet.
pub(super) struct Prompt {
    pub(super) id: RequestId,
    pub(super) waits: Waits,
    pub(super) cancelled: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Waits {
    Turn,
    Planner(Option<AgentId>),
    /// Waits for the text of a command. Meanwhile the tool call `call` stands for the text.
    Expansion {
        call: String,
        images: Vec<Image>,
    },
    /// Waits until the person has decided if the text of a command is sent.
    Question {
        id: RequestId,
        call: String,
        draft: Box<Draft>,
    },
}

impl Prompt {
    /// True if the prompt waits for the answer to this question.
    pub(super) fn asks(&self, question: &RequestId) -> bool {
        matches!(&self.waits, Waits::Question { id, .. } if id == question)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum WantedChange {
    Mode(ApprovalMode),
    Network(Network),
    Model,
}

/// A client's request to change the session, which is answered with the result of the change.
pub(super) struct Change {
    pub(super) id: RequestId,
    pub(super) wanted: WantedChange,
    /// True if the client changed an option. The answer then lists all options.
    pub(super) is_option: bool,
}

/// Returns the answer to a prompt whose turn has ended.
pub(super) fn answered(prompt: Prompt, turn: &TurnFinished) -> Reaction {
    let stop = match turn.reason {
        _ if prompt.cancelled => StopReason::Cancelled,
        EndReason::Provider => return Reaction::Refuse(prompt.id, provider_failed(turn)),
        EndReason::Refusal => StopReason::Refusal,
        EndReason::TokenLimit | EndReason::ContextFull => StopReason::MaxTokens,
        EndReason::StepLimit | EndReason::CostLimit | EndReason::TimeLimit => StopReason::MaxTurnRequests,
        EndReason::Done
        | EndReason::GaveUp
        | EndReason::NothingSaid
        | EndReason::CallAsText
        | EndReason::SchemaUnmet
        | EndReason::DeniedAtEnd => StopReason::EndTurn,
        EndReason::Aborted
        | EndReason::Interrupted
        | EndReason::Closed
        | EndReason::Terminated
        | EndReason::HungUp
        | EndReason::NoSandbox
        | EndReason::Internal => StopReason::Cancelled,
    };
    answer(prompt.id, &PromptResponse::new(stop))
}

fn provider_failed(turn: &TurnFinished) -> ErrorObject {
    let why = turn.message.clone().unwrap_or_else(|| turn.reason.to_string());
    ErrorWord::InternalError.because(why)
}

/// Ends the tool call that stands for the text of a command, because the text is sent.
pub(super) fn sent(call: &str) -> Reaction {
    Reaction::Update(Box::new(SessionUpdate::ToolCallUpdate(draft::ended(call, true, None))))
}

/// Ends the tool call that stands for the text of a command, and answers the prompt. The text is not sent.
pub(super) fn dropped(id: RequestId, call: &str, why: &str, stop: StopReason) -> Vec<Reaction> {
    let ended = SessionUpdate::ToolCallUpdate(draft::ended(call, false, Some(why)));
    vec![Reaction::Update(Box::new(ended)), answer(id, &PromptResponse::new(stop))]
}
