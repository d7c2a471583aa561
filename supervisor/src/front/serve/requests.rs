use std::sync::Arc;

use ipc::id::{AgentId, ConversationId};
use ipc::image::Image;
use ipc::rights::RightsChange;
use protocol::approval::{ApprovalMode, SERVER_METHODS};
use protocol::event::{RewindTarget, SCHEMA};
use protocol::frontend::{AgentAction, UserActionKind};
use protocol::rpc::{
    Accepted, AgentState, AskTogetherParams, Attachment, CLIENT_METHODS, Capabilities, ClientRequest,
    EditPlanParams, ErrorObject, ErrorWord, GetCommandParams, GetCommandResponse, GetPromptParams,
    GrantParams, HistoryParams, InitializeParams, InitializeResponse, ListAgentsResponse,
    ListCommandsResponse, ListPromptsResponse, MAX_LINE, NewConversationParams, PROTOCOL, RequestId,
    RewindParams, SendToAgentParams, SendUserMessageParams, SetModelParams, StartPlanParams, StopAgentParams,
};
use serde_json::value::RawValue;

use super::dialect::{ServeDone, ServeServer};
use super::history;
use crate::engine::opening::NotTaken;
use crate::front::wire::{OpenConversation, ServeEnding};
use crate::journal::pictures;

/// Maximum number of pages of logs that are read at the same time.
const READERS: usize = 4;

impl<O: OpenConversation> ServeServer<O> {
    pub(super) fn request(&mut self, id: RequestId, method: &str, params: Option<&RawValue>) {
        let request = match ClientRequest::read(method, params) {
            Ok(request) => request,
            Err(error) => return self.refuse(Some(&id), &error),
        };
        if let Err(error) = self.is_time_for(&request) {
            return self.refuse(Some(&id), &error);
        }
        match request {
            ClientRequest::Initialize(params) => self.initialize(&id, &params),
            ClientRequest::NewConversation(params) => self.open(id, params),
            ClientRequest::Shutdown(_) => {
                self.dialect.farewells.push(id);
                self.end(ServeEnding::Shutdown);
            }
            ClientRequest::SendUserMessage(params) => self.send_user_message(&id, params),
            ClientRequest::Interrupt(params) => {
                self.act(&id, &params.conversation_id, AgentAction::Interrupt);
            }
            ClientRequest::SetNet(params) => {
                let change = RightsChange::Network { net: params.net, reach: params.reach };
                self.act(&id, &params.conversation_id, AgentAction::SetRights { change });
            }
            ClientRequest::SetMode(params) => {
                self.act(&id, &params.conversation_id, AgentAction::SetMode { mode: params.mode });
            }
            ClientRequest::SetModel(params) => self.set_model(&id, params),
            ClientRequest::Grant(GrantParams { conversation_id, agent, right }) => {
                let change = RightsChange::from(right);
                self.act_on(&id, &conversation_id, agent, AgentAction::SetRights { change });
            }
            ClientRequest::Withdraw(GrantParams { conversation_id, agent, right }) => {
                let change = right.withdrawn();
                self.act_on(&id, &conversation_id, agent, AgentAction::SetRights { change });
            }
            ClientRequest::History(params) => self.history(id, params),
            ClientRequest::RevokeGrant(params) => {
                self.act(&id, &params.conversation_id, AgentAction::RevokeGrant { id: params.grant_id });
            }
            ClientRequest::Compact(params) => {
                self.act(&id, &params.conversation_id, AgentAction::Compact);
            }
            ClientRequest::ListAgents(params) => self.list_agents(&id, &params.conversation_id),
            ClientRequest::ListPrompts(params) => self.list_prompts(&id, &params.conversation_id),
            ClientRequest::GetPrompt(GetPromptParams { conversation_id, prompt }) => {
                self.act(&id, &conversation_id, UserActionKind::ExpandPrompt(prompt));
            }
            ClientRequest::ListCommands(params) => self.list_commands(&id, &params.conversation_id),
            ClientRequest::GetCommand(params) => self.get_command(&id, &params),
            ClientRequest::SendToAgent(params) => self.send_to_agent(&id, params),
            ClientRequest::StopAgent(StopAgentParams { conversation_id, agent }) => {
                self.act_on_known(&id, conversation_id, agent, AgentAction::Interrupt);
            }
            ClientRequest::StartPlan(StartPlanParams { conversation_id, text }) => {
                self.act(&id, &conversation_id, UserActionKind::Plan { text });
            }
            ClientRequest::EditPlan(EditPlanParams { conversation_id, agent, id: approval, markdown }) => {
                let kind = AgentAction::EditPlan { id: approval, markdown };
                self.act_on_known(&id, conversation_id, agent, kind);
            }
            ClientRequest::AskTogether(AskTogetherParams { conversation_id, agent, id: approval }) => {
                self.act_on_known(&id, conversation_id, agent, AgentAction::AskTogether { id: approval });
            }
            ClientRequest::Rewind(RewindParams { conversation_id, to, scope, files, digest }) => {
                let kind = UserActionKind::Rewind { target: RewindTarget { to, scope }, files, digest };
                self.act(&id, &conversation_id, kind);
            }
            ClientRequest::CloseConversation(params) => {
                self.act(&id, &params.conversation_id, AgentAction::Quit);
            }
        }
    }

    fn is_time_for(&self, request: &ClientRequest) -> Result<(), ErrorObject> {
        match (request, self.dialect.form) {
            _ if self.ending.is_some() && !matches!(request, ClientRequest::Shutdown(_)) => {
                Err(ErrorWord::ShuttingDown.because("the server is shutting down"))
            }
            (ClientRequest::Initialize(_), Some(_)) => {
                Err(ErrorWord::AlreadyInitialised.because("initialize can be sent only once"))
            }
            (ClientRequest::Initialize(_) | ClientRequest::Shutdown(_), _) | (_, Some(_)) => Ok(()),
            (_, None) => Err(ErrorWord::NotInitialised.because("initialize has to be the first request")),
        }
    }

    fn initialize(&mut self, id: &RequestId, params: &InitializeParams) {
        let form = params.notifications.unwrap_or_default();
        self.dialect.form = Some(form);
        if let Some(client) = &params.client {
            tracing::info!(name = %client.name, version = client.version.as_deref(), "a front end");
        }
        let all = |methods: &[&str]| methods.iter().map(|method| (*method).to_owned()).collect();
        let response = InitializeResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            event_schema: SCHEMA,
            capabilities: Capabilities {
                client_requests: all(CLIENT_METHODS),
                server_requests: all(SERVER_METHODS),
                modes: ApprovalMode::ALL.into(),
                notifications: form,
                max_line_bytes: u64::try_from(MAX_LINE).unwrap_or(u64::MAX),
            },
        };
        self.grant(id, &response);
    }

    /// Opens a session on a separate thread, because opening reads file systems.
    fn open(&mut self, id: RequestId, params: NewConversationParams) {
        let opener = Arc::clone(&self.dialect.opener);
        self.start(move || ServeDone::Opened(id, opener.open(params, true)));
    }

    /// Changes the model of an agent. Fails if the model is unavailable. A busy agent rejects the change with an event.
    fn set_model(&mut self, id: &RequestId, params: SetModelParams) {
        let SetModelParams { conversation_id, agent, model } = params;
        if let Some(why) = self.conversations.refuses_model(&conversation_id, &model) {
            return self.refuse(Some(id), &ErrorWord::OptionRefused.because(format!("model: {why}")));
        }
        self.act_on(id, &conversation_id, agent, UserActionKind::SetModel { model });
    }

    fn list_agents(&mut self, id: &RequestId, conversation: &ConversationId) {
        match self.conversations.agents(conversation) {
            Some(agents) => self.grant(id, &ListAgentsResponse { agents: agents.list() }),
            None => self.refuse(Some(id), &no_such(conversation)),
        }
    }

    fn list_prompts(&mut self, id: &RequestId, conversation: &ConversationId) {
        match self.conversations.prompts(conversation).map(<[_]>::to_vec) {
            Some(prompts) => self.grant(id, &ListPromptsResponse { prompts }),
            None => self.refuse(Some(id), &no_such(conversation)),
        }
    }

    fn list_commands(&mut self, id: &RequestId, conversation: &ConversationId) {
        match self.conversations.commands(conversation).map(<[_]>::to_vec) {
            Some(commands) => self.grant(id, &ListCommandsResponse { commands }),
            None => self.refuse(Some(id), &no_such(conversation)),
        }
    }

    fn get_command(&mut self, id: &RequestId, params: &GetCommandParams) {
        let GetCommandParams { conversation_id, name, arguments } = params;
        let Some(commands) = self.conversations.commands(conversation_id) else {
            return self.refuse(Some(id), &no_such(conversation_id));
        };
        let text = match commands.iter().find(|command| command.name == *name) {
            Some(command) => command.with_arguments(arguments).map(|text| GetCommandResponse {
                text,
                reads: command.reads,
                model: command.model.clone(),
            }),
            None => Err(format!("you have no command {name:?}")),
        };
        match text {
            Ok(text) => self.grant(id, &text),
            Err(why) => self.refuse(Some(id), &ErrorWord::InvalidParams.because(why)),
        }
    }

    fn send_user_message(&mut self, id: &RequestId, params: SendUserMessageParams) {
        let SendUserMessageParams { conversation_id, text, images, reads } = params;
        let kind = attached(images).map(|images| {
            if reads {
                AgentAction::PromptReading { text, images, offline: false }
            } else {
                AgentAction::Prompt { text, images }
            }
        });
        match kind {
            Ok(kind) => self.act(id, &conversation_id, kind),
            Err(error) => self.refuse(Some(id), &error),
        }
    }

    fn send_to_agent(&mut self, id: &RequestId, params: SendToAgentParams) {
        let SendToAgentParams { conversation_id, agent, text, images } = params;
        match attached(images) {
            Ok(images) => {
                self.act_on_known(id, conversation_id, agent, AgentAction::Prompt { text, images });
            }
            Err(error) => self.refuse(Some(id), &error),
        }
    }

    /// Passes an action to an agent. Answers with an error if the agent is unknown or has ended.
    fn act_on_known(
        &mut self,
        id: &RequestId,
        conversation: ConversationId,
        agent: AgentId,
        kind: impl Into<UserActionKind>,
    ) {
        let Some(agents) = self.conversations.agents(&conversation) else {
            return self.refuse(Some(id), &no_such(&conversation));
        };
        match agents.state(&agent) {
            None => self.refuse(Some(id), &no_agent(format!("there is no agent {agent}"))),
            Some(AgentState::Over) => self.refuse(Some(id), &no_agent(format!("agent {agent} has ended"))),
            Some(_) => self.act_on(id, &conversation, Some(agent), kind),
        }
    }

    fn history(&mut self, id: RequestId, params: HistoryParams) {
        let Some(log) = self.conversations.log(&params.conversation_id) else {
            return self.refuse(Some(&id), &no_such(&params.conversation_id));
        };
        if self.dialect.readers >= READERS {
            return self.refuse(Some(&id), &ErrorWord::Busy.because("too many pages of logs are being read"));
        }
        let log = log.to_owned();
        self.dialect.readers += 1;
        self.start(move || ServeDone::Read(id, history::page(&log, &params)));
    }

    fn act(&mut self, id: &RequestId, conversation: &ConversationId, kind: impl Into<UserActionKind>) {
        self.act_on(id, conversation, None, kind);
    }

    fn act_on(
        &mut self,
        id: &RequestId,
        conversation: &ConversationId,
        agent: Option<AgentId>,
        kind: impl Into<UserActionKind>,
    ) {
        match self.conversations.act(conversation, agent, kind.into()) {
            Ok(()) => self.grant(id, &Accepted {}),
            Err(NotTaken::Busy) => {
                let error = ErrorWord::Busy.because("the conversation is busy");
                self.refuse(Some(id), &error);
            }
            Err(NotTaken::Over) => self.refuse(Some(id), &no_such(conversation)),
        }
    }
}

fn no_such(conversation: &ConversationId) -> ErrorObject {
    let why = format!("there is no conversation {:?}, or the conversation is over", conversation.as_str());
    ErrorWord::NoSuchConversation.because(why)
}

fn no_agent(why: String) -> ErrorObject {
    ErrorWord::NoSuchAgent.because(why)
}

/// Reads the pictures of a message. The error names the invalid picture.
fn attached(attachments: Vec<Attachment>) -> Result<Vec<Image>, ErrorObject> {
    let read = attachments.into_iter().enumerate().map(|(index, attachment)| {
        pictures::attached(attachment).map_err(|error| {
            ErrorWord::InvalidParams.because(format!("images[{index}]: the picture {error}"))
        })
    });
    read.collect()
}
