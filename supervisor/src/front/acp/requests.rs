//! The handler of each method of the Agent Client Protocol.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, AgentCapabilities, CancelNotification, CloseSessionRequest, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, LoadSessionRequest, McpServer,
    NewSessionRequest, PromptCapabilities, ResumeSessionRequest, SessionCapabilities,
    SessionCloseCapabilities, SessionConfigOptionValue, SessionId, SessionListCapabilities,
    SessionResumeCapabilities, SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason,
};
use ipc::id::{AgentId, ConversationId};
use ipc::rights::RightsChange;
use protocol::frontend::{AgentAction, UserAction, UserActionKind};
use protocol::rpc::{ErrorObject, ErrorWord, NewConversationParams, RequestId};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::dialect::{AcpDialect, AcpDone};
use super::options::{MODE, MODEL, NETWORK, PLAN};
use super::servers;
use super::waiting::{Change, Opening, OpeningKind, Prompt, Waits, WantedChange, dropped};
use super::{errors, listing};
use crate::engine::opening::NotTaken;
use crate::front::wire::{OpenConversation, Server};
use crate::process::messages::say;

pub(super) type Refused = Result<(), ErrorObject>;

impl<O: OpenConversation> Server<AcpDialect<O>> {
    pub(super) fn requested(&mut self, id: &RequestId, method: &str, params: Option<&RawValue>) {
        if let Err(error) = self.carry_out(id, method, params) {
            self.refuse(Some(id), &errors::of(error));
        }
    }

    fn carry_out(&mut self, id: &RequestId, method: &str, params: Option<&RawValue>) -> Refused {
        let names = &AGENT_METHOD_NAMES;
        if self.ending.is_some() {
            return Err(ErrorWord::ShuttingDown.because("the server is shutting down"));
        }
        if method == names.initialize {
            return self.initialize(id, &read(params)?);
        }
        if !self.dialect.is_initialised {
            return Err(ErrorWord::NotInitialised.because("initialize has to be the first request"));
        }
        match method {
            _ if method == names.authenticate => {
                Err(ErrorWord::InvalidParams.because("no login is needed: Bailiwick uses its own API key"))
            }
            _ if method == names.session_new => {
                let NewSessionRequest { cwd, additional_directories, mcp_servers, .. } = read(params)?;
                only_one(&additional_directories)?;
                self.open(id, OpeningKind::New, cwd, None, &mcp_servers)
            }
            _ if method == names.session_load => {
                let LoadSessionRequest { cwd, additional_directories, mcp_servers, session_id, .. } =
                    read(params)?;
                only_one(&additional_directories)?;
                self.open(id, OpeningKind::Load, cwd, Some(session_id), &mcp_servers)
            }
            _ if method == names.session_resume => {
                let ResumeSessionRequest { cwd, additional_directories, mcp_servers, session_id, .. } =
                    read(params)?;
                only_one(&additional_directories)?;
                self.open(id, OpeningKind::Resume, cwd, Some(session_id), &mcp_servers)
            }
            _ if method == names.session_list => {
                let request: ListSessionsRequest = read(params)?;
                let (id, state) = (id.clone(), self.dialect.state.clone());
                self.start(move || AcpDone::Listed(id, listing::page(&state, &request)));
                Ok(())
            }
            _ if method == names.session_close => {
                let request: CloseSessionRequest = read(params)?;
                let session = conversation(&request.session_id);
                self.dialect.session(&session)?.closing.push(id.clone());
                self.surely(&session, None, AgentAction::Quit);
                Ok(())
            }
            _ if method == names.session_prompt => self.prompt(id, read(params)?),
            _ if method == names.session_set_mode => {
                let SetSessionModeRequest { session_id, mode_id, .. } = read(params)?;
                self.set_mode(id, &conversation(&session_id), &mode_id.0, false)
            }
            _ if method == names.session_set_config_option => self.set_option(id, read(params)?),
            _ => Err(ErrorWord::MethodNotFound.because(format!("there is no method {method:?}"))),
        }
    }

    pub(super) fn told(&mut self, method: &str, params: Option<&RawValue>) {
        if method != AGENT_METHOD_NAMES.session_cancel {
            return say(&format!("ignored the notification {method:?}"));
        }
        let Ok(CancelNotification { session_id, .. }) = read(params) else {
            return say("ignored a cancellation that names no session");
        };
        let session = conversation(&session_id);
        let Ok(prompt) = self.dialect.session(&session).map(|session| &mut session.prompt) else {
            return say("ignored a cancellation of a session that does not exist");
        };
        let agent = match prompt {
            None => return,
            Some(prompt) => {
                prompt.cancelled = true;
                match &prompt.waits {
                    Waits::Turn => None,
                    // The planner has not started yet. It is cancelled as soon as it starts.
                    Waits::Planner(None) => return,
                    Waits::Planner(Some(planner)) => Some(planner.clone()),
                    Waits::Expansion { .. } | Waits::Question { .. } => {
                        return self.drop_draft(&session);
                    }
                }
            }
        };
        self.surely(&session, agent, AgentAction::Interrupt);
    }

    /// Answers a prompt that is cancelled before its text was sent.
    fn drop_draft(&mut self, session: &ConversationId) {
        let Ok(state) = self.dialect.session(session) else { return };
        let Some(Prompt { id, waits, .. }) = state.prompt.take() else { return };
        let (Waits::Expansion { call, .. } | Waits::Question { call, .. }) = waits else { return };
        self.react(session, dropped(id, &call, "the text was not sent", StopReason::Cancelled));
    }

    fn initialize(&mut self, id: &RequestId, request: &InitializeRequest) -> Refused {
        if std::mem::replace(&mut self.dialect.is_initialised, true) {
            return Err(ErrorWord::AlreadyInitialised.because("initialize can be sent only once"));
        }
        if let Some(client) = &request.client_info {
            tracing::info!(name = %client.name, version = %client.version, "a client");
        }
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .session_capabilities(sessions);
        let ours = Implementation::new("bailiwick", env!("CARGO_PKG_VERSION")).title("Bailiwick".to_owned());
        let response =
            InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(ours);
        self.grant(id, &response);
        Ok(())
    }

    /// Opens a session on a separate thread, because opening reads file systems.
    fn open(
        &mut self,
        id: &RequestId,
        kind: OpeningKind,
        cwd: PathBuf,
        resume: Option<SessionId>,
        proposed: &[McpServer],
    ) -> Refused {
        if let Some(session) = &resume
            && !self.dialect.has_log(&session.0)
        {
            return Err(no_such(&conversation(session)));
        }
        let params = NewConversationParams {
            cwd: (&cwd).into(),
            resume: resume.map(|session| session.0.to_string()),
            ..self.dialect.params.clone()
        };
        let opener = Arc::clone(&self.dialect.opener);
        let opening = Opening { id: id.clone(), kind, proposals: servers::proposals(proposed) };
        let shows = kind == OpeningKind::Load;
        self.start(move || AcpDone::Opened(opening, opener.open(params, shows)));
        Ok(())
    }

    fn set_option(&mut self, id: &RequestId, request: SetSessionConfigOptionRequest) -> Refused {
        let session = conversation(&request.session_id);
        let SessionConfigOptionValue::ValueId { value } = &request.value else {
            return Err(ErrorWord::InvalidParams.because("value: expected one of the option's values"));
        };
        match &*request.config_id.0 {
            MODE => self.set_mode(id, &session, &value.0, true),
            NETWORK => {
                let net = self.dialect.session(&session)?.ceiling.network(&value.0);
                let net = net.map_err(|why| ErrorWord::OptionRefused.because(why))?;
                let change = RightsChange::Network { net: net.clone(), reach: None };
                self.change(
                    id,
                    &session,
                    WantedChange::Network(net),
                    true,
                    AgentAction::SetRights { change }.into(),
                )
            }
            MODEL => {
                let model = value.0.to_string();
                self.dialect.session(&session)?;
                self.can_choose(&session, &model)?;
                self.change(id, &session, WantedChange::Model, true, UserActionKind::SetModel { model })
            }
            other => Err(ErrorWord::InvalidParams.because(format!("there is no option {other:?}"))),
        }
    }

    fn set_mode(&mut self, id: &RequestId, session: &ConversationId, word: &str, is_option: bool) -> Refused {
        let state = self.dialect.session(session)?;
        if word == PLAN {
            state.settled.plans = true;
            let change = Change { id: id.clone(), wanted: WantedChange::Mode(state.settled.mode), is_option };
            let mut reactions = vec![state.changed(change)];
            reactions.extend(state.values());
            self.react(session, reactions);
            return Ok(());
        }
        let mode = state.ceiling.mode(word).map_err(|why| ErrorWord::OptionRefused.because(why))?;
        self.change(id, session, WantedChange::Mode(mode), is_option, AgentAction::SetMode { mode }.into())
    }

    /// Begins a change of a session. A later event answers the request `id`. Fails while another change is in progress.
    fn change(
        &mut self,
        id: &RequestId,
        session: &ConversationId,
        wanted: WantedChange,
        is_option: bool,
        action: UserActionKind,
    ) -> Refused {
        if self.dialect.session(session)?.change.is_some() {
            return Err(ErrorWord::Busy.because("another change of this session is in progress"));
        }
        self.act(session, action)?;
        self.dialect.session(session)?.change = Some(Change { id: id.clone(), wanted, is_option });
        Ok(())
    }

    pub(super) fn act(&mut self, session: &ConversationId, action: UserActionKind) -> Refused {
        self.conversations.act(session, None, action).map_err(|not_taken| match not_taken {
            NotTaken::Busy => ErrorWord::Busy.because("the session is busy"),
            NotTaken::Over => no_such(session),
        })
    }

    /// Sends an action to a session. If the session is busy, the action waits.
    pub(super) fn surely(
        &mut self,
        session: &ConversationId,
        agent: Option<AgentId>,
        kind: impl Into<UserActionKind>,
    ) {
        let action = UserAction { conversation_id: session.clone(), agent, kind: kind.into() };
        self.conversations.act_surely(action);
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| ErrorWord::InvalidParams.because(error))
}

/// Fails if the client names additional directories, because a session has only one project.
fn only_one(additional: &[PathBuf]) -> Refused {
    if additional.is_empty() {
        return Ok(());
    }
    let why =
        "additionalDirectories: a session can have only one project\n  hint: bailiwick acp --write PATH";
    Err(ErrorWord::OptionRefused.because(why))
}

pub(super) fn conversation(id: &SessionId) -> ConversationId {
    ConversationId(id.0.to_string())
}

pub(super) fn no_such(session: &ConversationId) -> ErrorObject {
    ErrorWord::NoSuchConversation
        .because(format!("there is no session {:?}, or the session is over", session.as_str()))
}
