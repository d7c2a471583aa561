//! One session of a client: the requests that wait for its events, and the state that the client was shown.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    CloseSessionResponse, ConfigOptionUpdate, CurrentModeUpdate, LoadSessionResponse, NewSessionResponse,
    PromptResponse, ResumeSessionResponse, SessionUpdate, SetSessionConfigOptionResponse,
    SetSessionModeResponse, StopReason,
};
use gate::activity::Activity;
use ipc::id::{AgentId, CallId};
use ipc::rights::Network;
use protocol::approval::{ApprovalMode, ServerRequest};
use protocol::event::{
    EndReason, EventKind, HostUse, NoticeCode, SessionEvent, SessionStarted, SubAgentResult, TurnFinished,
};
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserActionKind};
use protocol::plan::StepStatus;
use protocol::rpc::{ErrorWord, Passing, RequestId};
use protocol::server_prompt::ExpandedPrompt;

use super::commands::OfferedCommands;
use super::draft::{self, Draft};
use super::options::{Ceiling, Settled};
use super::reaction::{Reaction, answer};
use super::updates::{self, Step};
use super::waiting::{Change, Opening, OpeningKind, Prompt, Waits, WantedChange, answered, dropped};
use super::{errors, shown};
use crate::front::wire::pending::Asked;

pub(super) struct AcpSession {
    opening: Option<Opening>,
    pub(super) ceiling: Ceiling,
    pub(super) settled: Settled,
    told: Option<Settled>,
    pub(super) prompt: Option<Prompt>,
    pub(super) change: Option<Change>,
    pub(super) closing: Vec<RequestId>,
    /// Approval of a plan whose edited file is being read; `None` at other times.
    pub(super) edited: Option<(Asked, Box<ServerRequest>)>,
    pub(super) commands: OfferedCommands,
    /// True while an MCP server expands a prompt.
    pub(super) is_expanding: bool,
    /// Model to restore after a turn for which a command chose another model; `None` at other times.
    pub(super) model_after: Option<String>,
    /// Number of command texts so far. The tool call for the next text gets its id from this number.
    drafts: u64,
    /// Last part of the output of each running call.
    outputs: BTreeMap<(AgentId, CallId), String>,
    hosts: BTreeMap<AgentId, Vec<HostUse>>,
    plan: Vec<Step>,
    /// Number of the message to which the next piece of text belongs.
    message: u64,
}

impl AcpSession {
    pub(super) fn new(opening: Opening, ceiling: Ceiling, commands: OfferedCommands) -> Self {
        let settled = Settled {
            mode: ceiling.mode,
            plans: false,
            net: ceiling.net.clone(),
            model: ceiling.models.first().cloned().unwrap_or_default(),
        };
        Self {
            opening: Some(opening),
            ceiling,
            settled,
            told: None,
            prompt: None,
            change: None,
            closing: Vec::new(),
            edited: None,
            commands,
            is_expanding: false,
            model_after: None,
            drafts: 0,
            outputs: BTreeMap::new(),
            hosts: BTreeMap::new(),
            plan: Vec::new(),
            message: 1,
        }
    }

    /// Returns the reactions to an event: updates and answers for the client, and actions on the session.
    pub(super) fn on(&mut self, event: UiEvent) -> Vec<Reaction> {
        let UiEvent { agent, kind, .. } = event;
        match kind {
            UiEventKind::Logged(event) => self.logged(&event),
            UiEventKind::TextDelta { text } if self.speaks(&agent) => one(updates::reply(text, self.message)),
            UiEventKind::ThinkingDelta { text } if self.speaks(&agent) => {
                one(updates::thought(text, self.message))
            }
            UiEventKind::OutputDelta { call, text } => {
                vec![Reaction::Piece(Passing::OutputDelta { agent, call, text })]
            }
            UiEventKind::PromptExpanded(expanded) => self.expanded(*expanded),
            UiEventKind::ApprovalClosed { id } => {
                self.edited.take_if(|(asked, _)| asked.agent == agent && asked.id == id);
                Vec::new()
            }
            UiEventKind::LogPaused { path, .. } => {
                self.note(&format!("the disk of the log {path} is full: the session waits for free space"))
            }
            UiEventKind::LogGoesOn => self.note("the log can be written again, and the session continues"),
            UiEventKind::TextDelta { .. }
            | UiEventKind::ThinkingDelta { .. }
            | UiEventKind::ApprovalRequested { .. }
            | UiEventKind::FileNames { .. }
            | UiEventKind::Branch { .. }
            | UiEventKind::ServerPrompts { .. }
            | UiEventKind::RewindPreview(_)
            | UiEventKind::SpentBefore { .. } => Vec::new(),
        }
    }

    /// Returns the update for a piece of output; `None` after the call has ended, because its result has all output.
    pub(super) fn output(&mut self, agent: &AgentId, call: CallId, text: &str) -> Option<SessionUpdate> {
        let so_far = self.outputs.get_mut(&(agent.clone(), call))?;
        so_far.push_str(text);
        Some(updates::output(agent, call, so_far))
    }

    /// Answers all open requests when the session ends.
    pub(super) fn over(self, error: Option<String>) -> Vec<Reaction> {
        let has_failed = error.is_some();
        let why = error.unwrap_or_else(|| "the session is over".to_owned());
        let failed = |id| Reaction::Refuse(id, ErrorWord::InternalError.because(&why));
        let mut reactions: Vec<_> = self.opening.into_iter().map(|opening| failed(opening.id)).collect();
        reactions.extend(self.change.into_iter().map(|change| failed(change.id)));
        reactions.extend(self.prompt.into_iter().map(|prompt| {
            if has_failed {
                failed(prompt.id)
            } else {
                answer(prompt.id, &PromptResponse::new(StopReason::Cancelled))
            }
        }));
        let closed = CloseSessionResponse::new();
        reactions.extend(self.closing.into_iter().map(|id| answer(id, &closed)));
        reactions
    }

    /// True if the client is shown the text of this agent: the first agent, or a planner during its conversation.
    fn speaks(&self, agent: &AgentId) -> bool {
        let planner = self.prompt.as_ref().and_then(|prompt| match &prompt.waits {
            Waits::Planner(planner) => planner.as_ref(),
            _ => None,
        });
        agent.is_top_level() || planner == Some(agent)
    }

    fn note(&mut self, text: &str) -> Vec<Reaction> {
        self.remark(format!("\n\n_Bailiwick: {}_\n\n", shown::visible(text)))
    }

    pub(super) fn remark(&mut self, markdown: String) -> Vec<Reaction> {
        let number = self.message + 1;
        self.message += 2;
        one(updates::reply(markdown, number))
    }

    /// Returns the id and the update of a new tool call, which stands for the text of a command until the text is sent.
    pub(super) fn drafted(&mut self, name: &str) -> (String, Reaction) {
        self.drafts += 1;
        let call = format!("prompt:{}", self.drafts);
        let started = draft::waiting(&call, name);
        (call, boxed(SessionUpdate::ToolCall(started)))
    }

    /// Handles the text of an MCP server's prompt. Ignores the text if no prompt of the client waits for it any more.
    fn expanded(&mut self, expanded: ExpandedPrompt) -> Vec<Reaction> {
        self.is_expanding = false;
        let Some(Prompt { waits: Waits::Expansion { images, call }, .. }) = &mut self.prompt else {
            return Vec::new();
        };
        let (images, call) = (std::mem::take(images), call.clone());
        match Draft::of_prompt(expanded, images) {
            Ok(draft) => vec![Reaction::AskToSend(Box::new(draft))],
            Err(why) => {
                let Some(prompt) = self.prompt.take() else { return Vec::new() };
                let why = format!("cannot get the text of the prompt: {why}");
                dropped(prompt.id, &call, &why, StopReason::EndTurn)
            }
        }
    }

    /// Returns the action that restores the session's model after a command's turn; `None` if the model is unchanged.
    fn model_back(&mut self) -> Option<Reaction> {
        let model = self.model_after.take().filter(|model| *model != self.settled.model)?;
        Some(Reaction::Act(None, UserActionKind::SetModel { model }))
    }

    fn logged(&mut self, event: &SessionEvent) -> Vec<Reaction> {
        let SessionEvent { agent, kind, .. } = event;
        match kind {
            EventKind::SessionStarted(started) => self.started(event, started),
            EventKind::UserMessage { text, images } if agent.is_top_level() && self.opening.is_some() => {
                updates::said(text, images).into_iter().map(boxed).collect()
            }
            EventKind::AssistantMessage(message) => {
                self.message += 1;
                if self.speaks(agent) {
                    return Vec::new();
                }
                let texts = message.content.iter().filter_map(|block| words(block.get()));
                let text = texts.collect::<Vec<_>>().join("\n\n");
                if text.is_empty() { Vec::new() } else { one(updates::sub_agent_said(agent, &text)) }
            }
            EventKind::ModelFailed { message, retry_in_ms: Some(wait), .. } => self.note(&format!(
                "{message}; the model is asked again in {:.1} s",
                std::time::Duration::from_millis(*wait).as_secs_f64()
            )),
            EventKind::ToolCallStarted { call, .. } => {
                self.outputs.insert((agent.clone(), *call), String::new());
                updates::started(agent, kind).map(boxed).into_iter().collect()
            }
            EventKind::ToolCallFinished { call, .. } => {
                self.outputs.remove(&(agent.clone(), *call));
                updates::finished(agent, kind).map(boxed).into_iter().collect()
            }
            EventKind::SubAgentSpawned(_)
            | EventKind::SubAgentResult(_)
            | EventKind::HostsUsed { .. }
            | EventKind::PlanCreated(_)
            | EventKind::PlanStepStatus(_) => self.beside(agent, kind),
            EventKind::Restored { places, .. } => {
                let places: Vec<_> =
                    places.iter().map(|place| format!("{}: {}", place.path, place.phrase())).collect();
                self.note(&format!(
                    "the agent changed files that your own programs run later: {}",
                    places.join("; ")
                ))
            }
            EventKind::ContextCompacted(compacted) => self.note(&compacted.to_string()),
            EventKind::ModeChanged { mode } if agent.is_top_level() => self.mode_changed(*mode),
            EventKind::RightsChanged(changed) if agent.is_top_level() => match changed.rights.value() {
                Some(rights) => self.net_changed(rights.net.clone()),
                None => Vec::new(),
            },
            EventKind::ModelChanged(changed) if agent.is_top_level() => {
                self.settled.model.clone_from(&changed.to);
                self.settle(|wanted| *wanted == WantedChange::Model)
            }
            EventKind::Notice { code, message } => self.noticed(agent, code, message),
            EventKind::TurnFinished(turn) if agent.is_top_level() && self.opening.is_none() => {
                self.turn_over(turn)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the reactions to events of sub-agents, gateways and plans.
    fn beside(&mut self, agent: &AgentId, kind: &EventKind) -> Vec<Reaction> {
        match kind {
            EventKind::SubAgentSpawned(spawned) => {
                let mut reactions = one(updates::spawned(spawned));
                reactions.extend(self.planner_started(spawned.agent.clone(), spawned.activity));
                reactions
            }
            EventKind::SubAgentResult(result) => self.sub_agent_over(result),
            EventKind::HostsUsed { uses, .. } => {
                let known = self.hosts.entry(agent.clone()).or_default();
                let is_first = known.is_empty();
                for used in uses {
                    known.retain(|before| (&before.host, before.port) != (&used.host, used.port));
                    known.push(used.clone());
                }
                one(updates::hosts(agent, known, is_first))
            }
            EventKind::PlanCreated(created) => {
                let step = |step: &protocol::plan::PlanStep| Step {
                    title: step.title.clone(),
                    status: StepStatus::Pending,
                };
                self.plan = created.plan.steps.iter().map(step).collect();
                one(updates::plan(&self.plan))
            }
            EventKind::PlanStepStatus(status) => {
                let at = usize::try_from(status.step).unwrap_or_default().checked_sub(1);
                match at.and_then(|at| self.plan.get_mut(at)) {
                    Some(step) => {
                        step.status = status.to;
                        one(updates::plan(&self.plan))
                    }
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Answers the request that opened the session.
    fn started(&mut self, event: &SessionEvent, started: &SessionStarted) -> Vec<Reaction> {
        let net = started.rights.value().map(|rights| rights.net.clone());
        self.settled = Settled {
            mode: started.mode,
            plans: false,
            net: net.unwrap_or(Network::Off),
            model: started.model.clone(),
        };
        self.told = Some(self.settled.clone());
        let Some(Opening { id, kind, proposals }) = self.opening.take() else { return Vec::new() };
        let (modes, options) = (self.settled.modes(&self.ceiling), self.settled.options(&self.ceiling));
        let response = match kind {
            OpeningKind::New => answer(
                id,
                &NewSessionResponse::new(event.session.as_str().to_owned())
                    .modes(modes)
                    .config_options(options),
            ),
            OpeningKind::Load => answer(id, &LoadSessionResponse::new().modes(modes).config_options(options)),
            OpeningKind::Resume => {
                answer(id, &ResumeSessionResponse::new().modes(modes).config_options(options))
            }
        };
        let mut reactions = vec![response, boxed(self.commands.update())];
        if let Some(proposals) = proposals {
            self.message += 1;
            reactions.push(boxed(updates::reply(proposals, self.message)));
            self.message += 1;
        }
        reactions
    }

    fn planner_started(&mut self, agent: AgentId, activity: Option<Activity>) -> Option<Reaction> {
        let prompt = self.prompt.as_mut()?;
        let Waits::Planner(planner @ None) = &mut prompt.waits else { return None };
        if activity != Some(Activity::Plan) {
            return None;
        }
        *planner = Some(agent.clone());
        prompt.cancelled.then(|| Reaction::Act(Some(agent), AgentAction::Interrupt.into()))
    }

    fn sub_agent_over(&mut self, result: &SubAgentResult) -> Vec<Reaction> {
        let is_of_prompt = |prompt: &mut Prompt| prompt.waits == Waits::Planner(Some(result.agent.clone()));
        let prompt = self.prompt.take_if(is_of_prompt);
        let mut reactions = one(updates::sub_agent_ended(result));
        reactions.extend(prompt.map(|prompt| {
            let stop = if prompt.cancelled { StopReason::Cancelled } else { StopReason::EndTurn };
            answer(prompt.id, &PromptResponse::new(stop))
        }));
        reactions
    }

    fn mode_changed(&mut self, mode: ApprovalMode) -> Vec<Reaction> {
        self.settled.mode = mode;
        self.settle(|wanted| *wanted == WantedChange::Mode(mode))
    }

    fn net_changed(&mut self, net: Network) -> Vec<Reaction> {
        self.settled.net = net.clone();
        self.settle(|wanted| *wanted == WantedChange::Network(net.clone()))
    }

    /// Answers the pending change if `is_done` is true for it, and sends changed values to the client.
    pub(super) fn settle(&mut self, is_done: impl Fn(&WantedChange) -> bool) -> Vec<Reaction> {
        let done = self.change.take_if(|change| is_done(&change.wanted));
        if let Some(Change { wanted: WantedChange::Mode(_), .. }) = &done {
            self.settled.plans = false;
        }
        let mut reactions: Vec<_> = done.into_iter().map(|change| self.changed(change)).collect();
        reactions.extend(self.values());
        reactions
    }

    /// Returns the answer to a client's request for a change.
    pub(super) fn changed(&self, change: Change) -> Reaction {
        if change.is_option {
            answer(change.id, &SetSessionConfigOptionResponse::new(self.settled.options(&self.ceiling)))
        } else {
            answer(change.id, &SetSessionModeResponse::new())
        }
    }

    /// Returns updates with those values of the session, such as its mode, that the client has not been told.
    pub(super) fn values(&mut self) -> Vec<Reaction> {
        if self.told.as_ref() == Some(&self.settled) {
            return Vec::new();
        }
        self.told = Some(self.settled.clone());
        let options = self.settled.options(&self.ceiling);
        vec![
            boxed(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(self.settled.mode_word()))),
            boxed(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options))),
        ]
    }

    fn noticed(&mut self, agent: &AgentId, code: &NoticeCode, message: &str) -> Vec<Reaction> {
        if let Some(answered) = self.change_noticed(agent, code, message) {
            return answered;
        }
        let mut reactions = self.note(message);
        let ends_prompt = match code {
            NoticeCode::PlanRefused => {
                matches!(&self.prompt, Some(Prompt { waits: Waits::Planner(None), .. }))
            }
            NoticeCode::EmptyMessage
            | NoticeCode::MessageTooLong
            | NoticeCode::CommandNotRun
            | NoticeCode::NothingToCompact => {
                matches!(&self.prompt, Some(Prompt { waits: Waits::Turn, .. }))
            }
            _ => false,
        };
        if let Some(prompt) = self.prompt.take_if(|_| ends_prompt) {
            reactions.extend(self.model_back());
            reactions.push(match code {
                NoticeCode::NothingToCompact => answer(prompt.id, &PromptResponse::new(StopReason::EndTurn)),
                _ => Reaction::Refuse(prompt.id, ErrorWord::InvalidParams.because(message)),
            });
        }
        if *code == NoticeCode::PlanNotRead
            && let Some((asked, request)) = self.edited.take()
        {
            reactions.push(Reaction::AskAgain(asked, request));
        }
        reactions
    }

    /// Answers the pending change if this notice rejects it, or reports it as already in effect; otherwise `None`.
    fn change_noticed(&mut self, agent: &AgentId, code: &NoticeCode, message: &str) -> Option<Vec<Reaction>> {
        let is_about = |change: &mut Change| match change.wanted {
            WantedChange::Model => matches!(code, NoticeCode::ModelRefused | NoticeCode::ModelUnchanged),
            WantedChange::Mode(_) | WantedChange::Network(_) => code.ends_change(),
        };
        let change = if agent.is_top_level() { self.change.take_if(is_about) } else { None }?;
        if matches!(code, NoticeCode::RightsUnchanged | NoticeCode::ModelUnchanged) {
            if let WantedChange::Mode(_) = change.wanted {
                self.settled.plans = false;
            }
            let mut reactions = vec![self.changed(change)];
            reactions.extend(self.values());
            return Some(reactions);
        }
        let error = errors::of(ErrorWord::OptionRefused.because(message));
        Some(vec![Reaction::Refuse(change.id, error)])
    }

    fn turn_over(&mut self, turn: &TurnFinished) -> Vec<Reaction> {
        self.message += 1;
        let prompt = self.prompt.take_if(|prompt| prompt.waits == Waits::Turn);
        let words = match turn.reason {
            EndReason::Done | EndReason::Interrupted | EndReason::Provider => None,
            _ => turn.message.clone().or_else(|| Some(turn.reason.to_string())),
        };
        let mut reactions =
            words.map_or_else(Vec::new, |words| self.note(&format!("the turn ended: {words}")));
        reactions.extend(prompt.is_some().then(|| self.model_back()).flatten());
        reactions.extend(prompt.map(|prompt| answered(prompt, turn)));
        reactions
    }
}

fn boxed(update: SessionUpdate) -> Reaction {
    Reaction::Update(Box::new(update))
}

fn one(update: SessionUpdate) -> Vec<Reaction> {
    vec![boxed(update)]
}

/// Returns the text of a block of a message. `None` for another kind of block.
fn words(block: &str) -> Option<String> {
    let block: serde_json::Value = serde_json::from_str(block).ok()?;
    let is_text = block.get("type")? == "text";
    is_text.then(|| block.get("text")?.as_str().map(str::to_owned))?
}
