//! Sends a prompt to the agent. Text that is not the person's own is sent only after a question.

use agent_client_protocol_schema::v1::{CLIENT_METHOD_NAMES, PromptRequest, StopReason};
use ipc::id::ConversationId;
use ipc::image::Image;
use protocol::frontend::{AgentAction, UserActionKind};
use protocol::rpc::{ErrorObject, ErrorWord, RequestId, ResponseOutcome};

use super::commands::NamedCommand;
use super::dialect::AcpServer;
use super::draft::{Draft, DraftAnswer};
use super::errors;
use super::prompt::{self, Message};
use super::requests::{Refused, conversation};
use super::waiting::{Prompt, Waits, dropped, sent};
use crate::front::wire::OpenConversation;
use crate::process::messages::say;

impl<O: OpenConversation> AcpServer<O> {
    pub(super) fn prompt(&mut self, id: &RequestId, request: PromptRequest) -> Refused {
        let session = conversation(&request.session_id);
        let state = self.dialect.session(&session)?;
        if state.prompt.is_some() {
            return Err(ErrorWord::Busy.because("a turn is running: cancel the turn, or wait for its end"));
        }
        let Message { text, images } = prompt::read(request.prompt)?;
        let named = state.commands.named(&text, !images.is_empty()).transpose();
        match named.map_err(|why| ErrorWord::InvalidParams.because(why))? {
            None => self.deliver(id, &session, Draft { text, images, ..Draft::default() }),
            Some(NamedCommand::Plan(text)) => {
                self.act(&session, UserActionKind::Plan { text })?;
                self.waits(id, &session, Waits::Planner(None))
            }
            Some(NamedCommand::Compact) => {
                self.act(&session, AgentAction::Compact.into())?;
                self.waits(id, &session, Waits::Turn)
            }
            Some(NamedCommand::Own(draft)) => self.own(id, &session, Draft { images, ..draft }, &text),
            Some(NamedCommand::Prompt(name, wanted)) => {
                if state.is_expanding {
                    return Err(ErrorWord::Busy.because("the text of another prompt is being sent"));
                }
                self.act(&session, UserActionKind::ExpandPrompt(wanted))?;
                self.expand(id, &session, &name, images)
            }
        }
    }

    fn waits(&mut self, id: &RequestId, session: &ConversationId, waits: Waits) -> Refused {
        self.dialect.session(session)?.prompt = Some(Prompt { id: id.clone(), waits, cancelled: false });
        Ok(())
    }

    /// Sends the text of a command. If the command is the project's, the person is asked first.
    fn own(&mut self, id: &RequestId, session: &ConversationId, draft: Draft, typed: &str) -> Refused {
        let state = self.dialect.session(session)?;
        if draft.asks {
            let name = typed.split_whitespace().next().unwrap_or_default();
            let (call, reaction) = state.drafted(name.trim_start_matches('/'));
            self.react(session, vec![reaction]);
            self.waits(id, session, Waits::Expansion { call, images: Vec::new() })?;
            return self.ask_to_send(session, draft);
        }
        let shown = state.remark(draft.shown());
        self.react(session, shown);
        self.deliver(id, session, draft)
    }

    fn expand(
        &mut self,
        id: &RequestId,
        session: &ConversationId,
        name: &str,
        images: Vec<Image>,
    ) -> Refused {
        let state = self.dialect.session(session)?;
        state.is_expanding = true;
        let (call, reaction) = state.drafted(name);
        self.react(session, vec![reaction]);
        self.waits(id, session, Waits::Expansion { call, images })
    }

    /// Asks the person if the text of a command may be sent. The prompt waits for the answer.
    pub(super) fn ask_to_send(&mut self, session: &ConversationId, draft: Draft) -> Refused {
        let state = self.dialect.session(session)?;
        let Some(Prompt { waits: waits @ Waits::Expansion { .. }, .. }) = &mut state.prompt else {
            return Ok(());
        };
        let Waits::Expansion { call, .. } = std::mem::replace(waits, Waits::Turn) else { return Ok(()) };
        let question = RequestId::from(format!("{session}:{call}").as_str());
        let params = draft.question(session, &call);
        *waits = Waits::Question { id: question.clone(), call, draft: Box::new(draft) };
        self.call(Some(&question), CLIENT_METHOD_NAMES.session_request_permission, &params);
        Ok(())
    }

    /// Handles the answer to the question whether a text may be sent. Returns false if no question has this id.
    pub(super) fn answered_draft(&mut self, id: &RequestId, outcome: &ResponseOutcome) -> bool {
        let Some((session, prompt)) = self.dialect.asking(id) else { return false };
        let Prompt { id, waits: Waits::Question { call, draft, .. }, .. } = prompt else { return false };
        let stop = match draft.sent(outcome) {
            DraftAnswer::Allowed => {
                self.react(&session, vec![sent(&call)]);
                if let Err(error) = self.deliver(&id, &session, *draft) {
                    self.refuse(Some(&id), &errors::of(error));
                }
                return true;
            }
            DraftAnswer::Cancelled => StopReason::Cancelled,
            DraftAnswer::Denied => StopReason::EndTurn,
            DraftAnswer::Invalid(why) => {
                say(&format!("a message was not sent: {why}"));
                StopReason::EndTurn
            }
        };
        self.react(&session, dropped(id, &call, "the text was not sent", stop));
        true
    }

    /// Gives the text of a draft to the agent. In mode `plan`, the text becomes the purpose of a new plan.
    fn deliver(&mut self, id: &RequestId, session: &ConversationId, draft: Draft) -> Refused {
        let Draft { text, images, reads, model, .. } = draft;
        let (plans, now) = {
            let settled = &self.dialect.session(session)?.settled;
            (settled.plans, settled.model.clone())
        };
        if plans {
            if !images.is_empty() {
                return Err(ErrorWord::InvalidParams.because("a message to a planner cannot have pictures"));
            }
            self.act(session, UserActionKind::Plan { text })?;
            return self.waits(id, session, Waits::Planner(None));
        }
        let model = model.filter(|model| *model != now);
        if let Some(model) = model.clone() {
            self.can_choose(session, &model)?;
            self.act(session, UserActionKind::SetModel { model })?;
        }
        let action = if reads {
            AgentAction::PromptReading { text, images, offline: false }
        } else {
            AgentAction::Prompt { text, images }
        };
        let acted = self.act(session, action.into());
        if model.is_some() {
            if acted.is_err() {
                self.surely(session, None, UserActionKind::SetModel { model: now });
            } else {
                self.dialect.session(session)?.model_after = Some(now);
            }
        }
        acted?;
        self.waits(id, session, Waits::Turn)
    }

    /// Fails if the session cannot have this model.
    pub(super) fn can_choose(&self, session: &ConversationId, model: &str) -> Result<(), ErrorObject> {
        match self.conversations.refuses_model(session, model) {
            Some(why) => Err(ErrorWord::OptionRefused.because(format!("model: {why}"))),
            None => Ok(()),
        }
    }
}
