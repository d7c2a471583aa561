//! The lines that the `acp` server sends, and the state that the server keeps besides the conversations.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CancelRequestNotification, ListSessionsResponse, PROTOCOL_LEVEL_METHOD_NAMES,
    RequestId as AcpRequestId, SessionNotification, SessionUpdate,
};
use ipc::id::ConversationId;
use protocol::approval::{ApprovalAnswer, ApprovalMode, ServerRequest};
use protocol::frontend::{AgentAction, UiEvent};
use protocol::rpc::{ErrorObject, NewConversationParams, Passing, RequestId, ResponseOutcome, transport};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::commands::OfferedCommands;
use super::options::Ceiling;
use super::reaction::Reaction;
use super::requests::no_such;
use super::session::AcpSession;
use super::waiting::{Opening, Prompt};
use super::{choices::Chosen, edited, errors, permission};
use crate::front::wire::pending::Asked;
use crate::front::wire::{Dialect, OpenConversation, OpenedConversation, Server};
use crate::process::messages::say;

pub(super) struct AcpDialect<O> {
    pub(super) opener: Arc<O>,
    /// Options with which every session is opened.
    pub(super) params: NewConversationParams,
    /// Widest mode that a client may choose; `None` if that is the mode in which the session starts.
    widest: Option<ApprovalMode>,
    pub(super) state: PathBuf,
    pub(super) is_initialised: bool,
    sessions: BTreeMap<ConversationId, AcpSession>,
}

pub(super) type AcpServer<O> = Server<AcpDialect<O>>;

pub(super) enum AcpDone {
    Opened(Opening, Result<OpenedConversation, ErrorObject>),
    Listed(RequestId, Result<ListSessionsResponse, ErrorObject>),
    /// The edited text of a plan that waits for approval; the error says why the plan's file cannot be read.
    Edited(Asked, Result<String, String>),
}

impl<O: OpenConversation> AcpDialect<O> {
    pub(super) fn new(
        opener: O,
        params: NewConversationParams,
        widest: Option<ApprovalMode>,
        state: PathBuf,
    ) -> Self {
        let opener = Arc::new(opener);
        Self { opener, params, widest, state, is_initialised: false, sessions: BTreeMap::new() }
    }

    /// True if a session of exactly this name has a log.
    pub(super) fn has_log(&self, name: &str) -> bool {
        let is_name = uuid::Uuid::try_parse(name).is_ok();
        is_name && self.state.join("sessions").join(format!("{name}.jsonl")).is_file()
    }

    /// Removes the prompt that waits for the answer to the question `id`. Returns the prompt with its session.
    pub(super) fn asking(&mut self, id: &RequestId) -> Option<(ConversationId, Prompt)> {
        self.sessions.iter_mut().find_map(|(session, state)| {
            Some((session.clone(), state.prompt.take_if(|prompt| prompt.asks(id))?))
        })
    }

    pub(super) fn session(&mut self, session: &ConversationId) -> Result<&mut AcpSession, ErrorObject> {
        self.sessions.get_mut(session).ok_or_else(|| no_such(session))
    }
}

impl<O: OpenConversation> Dialect for AcpDialect<O> {
    type Done = AcpDone;

    fn request(server: &mut Server<Self>, id: RequestId, method: &str, params: Option<&RawValue>) {
        server.requested(&id, method, params);
    }

    fn notified(server: &mut Server<Self>, method: &str, params: Option<&RawValue>) {
        server.told(method, params);
    }

    fn done(server: &mut Server<Self>, done: AcpDone) {
        match done {
            AcpDone::Opened(opening, opened) => server.opened(opening, opened),
            AcpDone::Listed(id, Ok(page)) => server.grant(&id, &page),
            AcpDone::Listed(id, Err(error)) => server.refuse(Some(&id), &errors::of(error)),
            AcpDone::Edited(asked, text) => server.edited(asked, text),
        }
    }

    fn tell(server: &mut Server<Self>, event: UiEvent) {
        let conversation = event.conversation_id.clone();
        let Ok(session) = server.dialect.session(&conversation) else { return };
        let reactions = session.on(event);
        server.react(&conversation, reactions);
    }

    fn question(&mut self, id: &RequestId, asked: &ServerRequest) -> serde_json::Result<String> {
        let params = to_raw_value(&permission::question(asked))?;
        transport::call(Some(id), CLIENT_METHOD_NAMES.session_request_permission, &params)
    }

    /// Answers an approval. If the person edited the plan's file instead, the approval stays open.
    fn respond(
        server: &mut Server<Self>,
        asked: Asked,
        request: Box<ServerRequest>,
        outcome: &ResponseOutcome,
    ) {
        let answer = match permission::answer(&request, outcome) {
            Ok(Chosen::Decided(decision)) => request.answer(decision),
            Ok(Chosen::Edited) => return server.read_edited(asked, request),
            Err(cause) => ApprovalAnswer::Failed { cause },
        };
        server.pass_on(asked.answered(answer));
    }

    fn answered(server: &mut Server<Self>, id: &RequestId, outcome: &ResponseOutcome) -> bool {
        server.answered_draft(id, outcome)
    }

    /// Tells the client to close a question, unless the client cancelled the turn and has closed it itself.
    fn withdrawn(server: &mut Server<Self>, asked: &Asked) {
        let session = server.dialect.sessions.get(&asked.conversation);
        let is_cancelled =
            session.is_some_and(|session| session.prompt.as_ref().is_some_and(|prompt| prompt.cancelled));
        let Some(id) = asked.request_id().text().filter(|_| !is_cancelled) else { return };
        let cancelled = CancelRequestNotification::new(AcpRequestId::Str(id));
        server.call(None, PROTOCOL_LEVEL_METHOD_NAMES.cancel_request, &cancelled);
    }

    fn over(server: &mut Server<Self>, conversation: ConversationId, error: Option<String>) {
        let Some(session) = server.dialect.sessions.remove(&conversation) else { return };
        let reactions = session.over(error);
        server.react(&conversation, reactions);
    }

    fn piece(&mut self, conversation: ConversationId, piece: Passing) -> Option<serde_json::Result<String>> {
        let Passing::OutputDelta { agent, call, text } = piece else { return None };
        let update = self.sessions.get_mut(&conversation)?.output(&agent, call, &text)?;
        Some(line(&conversation, update))
    }

    fn part(_: &mut Server<Self>) {}
}

impl<O: OpenConversation> AcpServer<O> {
    fn opened(&mut self, opening: Opening, opened: Result<OpenedConversation, ErrorObject>) {
        let id = opening.id.clone();
        let opened = opened.and_then(|opened| {
            let ceiling = Ceiling::new(opened.start.clone(), self.dialect.widest);
            let commands = OfferedCommands::new(opened.commands.clone(), opened.prompts.clone());
            Ok((self.admit(opened)?, AcpSession::new(opening, ceiling, commands)))
        });
        match opened {
            Ok((conversation, session)) => drop(self.dialect.sessions.insert(conversation, session)),
            Err(error) => self.refuse(Some(&id), &errors::of(error)),
        }
    }

    /// Carries out the reactions to an event, in their order.
    pub(super) fn react(&mut self, conversation: &ConversationId, reactions: Vec<Reaction>) {
        for reaction in reactions {
            match reaction {
                Reaction::Update(update) => match line(conversation, *update) {
                    Ok(line) => self.send(line),
                    Err(error) => say(&format!("an update cannot be serialised: {error}")),
                },
                Reaction::Piece(piece) => self.send_piece(conversation.clone(), piece),
                Reaction::Answer(id, result) => self.grant(&id, &result),
                Reaction::Refuse(id, error) => self.refuse(Some(&id), &errors::of(error)),
                Reaction::Act(agent, kind) => self.surely(conversation, agent, kind),
                Reaction::AskAgain(asked, request) => self.ask(asked, request),
                Reaction::AskToSend(draft) => {
                    if let Err(error) = self.ask_to_send(conversation, *draft) {
                        say(&error.message);
                    }
                }
            }
        }
    }

    /// Starts to read the edited file of a plan, on a separate thread.
    fn read_edited(&mut self, asked: Asked, request: Box<ServerRequest>) {
        let ServerRequest::PlanApproval(plan) = &*request else { return };
        let path = PathBuf::from(plan.path.clone());
        if let Ok(session) = self.dialect.session(&asked.conversation) {
            session.edited = Some((asked.clone(), request));
        }
        self.start(move || AcpDone::Edited(asked, edited::read(&path)));
    }

    /// Replaces the plan that waits for approval by the edited text. If `text` is an error, asks the question again.
    fn edited(&mut self, asked: Asked, text: Result<String, String>) {
        match text {
            Ok(markdown) => {
                let kind = AgentAction::EditPlan { id: asked.id, markdown };
                self.surely(&asked.conversation, Some(asked.agent), kind);
            }
            Err(why) => {
                say(&why);
                let Ok(session) = self.dialect.session(&asked.conversation) else { return };
                if let Some((asked, request)) = session.edited.take() {
                    self.ask(asked, request);
                }
            }
        }
    }

    pub(super) fn call(&mut self, id: Option<&RequestId>, method: &str, params: &impl Serialize) {
        match to_raw_value(params).and_then(|params| transport::call(id, method, &params)) {
            Ok(line) => self.send(line),
            Err(error) => say(&format!("a message cannot be serialised: {method}: {error}")),
        }
    }
}

fn line(conversation: &ConversationId, update: SessionUpdate) -> serde_json::Result<String> {
    let params = to_raw_value(&SessionNotification::new(conversation.as_str().to_owned(), update))?;
    transport::call(None, CLIENT_METHOD_NAMES.session_update, &params)
}
