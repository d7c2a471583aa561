//! The sessions that one server of front ends (`serve`, `acp`) has open.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ipc::id::{AgentId, ConversationId};
use ipc::rights::Network;
use protocol::approval::ApprovalMode;
use protocol::frontend::{UiEvent, UserAction, UserActionKind};
use protocol::own_command::OwnCommand;
use protocol::rpc::{ErrorObject, NewConversationParams};
use protocol::server_prompt::ServerPrompt;
use tokio::task::JoinSet;

use super::agents::Agents;
use crate::engine::driver::Models;
use crate::engine::opening::{Handle, NotTaken, SessionEvents, unheard};
use crate::process::messages::say;

pub(in crate::front) trait OpenConversation: Send + Sync + 'static {
    /// Opens a conversation. The error is for the front end. May block.
    ///
    /// If `shows` is true, a continued session first sends its earlier events.
    fn open(&self, params: NewConversationParams, shows: bool) -> Result<OpenedConversation, ErrorObject>;
}

/// An open conversation, which does nothing until its future `run` is polled.
pub(in crate::front) struct OpenedConversation {
    pub(in crate::front) handle: Handle,
    pub(in crate::front) events: SessionEvents,
    pub(in crate::front) log: PathBuf,
    /// The models from which the front end can choose; `None` if the model cannot be changed.
    pub(in crate::front) models: Option<Arc<dyn Models>>,
    /// The access at the start of the conversation, which follows from its options.
    pub(in crate::front) start: StartAccess,
    /// The prompts of the conversation's MCP servers.
    pub(in crate::front) prompts: Vec<ServerPrompt>,
    /// The commands of the person and of the trusted project.
    pub(in crate::front) commands: Vec<OwnCommand>,
    pub(in crate::front) run: Pin<Box<dyn Future<Output = Result<(), String>> + Send>>,
}

/// The access with which a conversation starts, from the conversation's options and not from an earlier run.
#[derive(Clone, Debug)]
pub(in crate::front) struct StartAccess {
    pub(in crate::front) mode: ApprovalMode,
    pub(in crate::front) net: Network,
    /// Names of models: the session's own, then those that sub-agents may use besides.
    pub(in crate::front) models: Vec<String>,
}

/// A conversation that has ended, with its last events. The error says why there is no result; `None` if there is one.
pub(in crate::front) struct ConversationEnded {
    pub(in crate::front) conversation: ConversationId,
    pub(in crate::front) events: Vec<UiEvent>,
    pub(in crate::front) error: Option<String>,
}

pub(in crate::front) enum NextEvent {
    /// An event for the front end, which may be an approval request.
    Event(UiEvent),
    Ended(ConversationEnded),
}

struct Conversation {
    handle: Handle,
    events: SessionEvents,
    log: PathBuf,
    models: Option<Arc<dyn Models>>,
    agents: Agents,
    prompts: Vec<ServerPrompt>,
    commands: Vec<OwnCommand>,
}

#[derive(Default)]
pub(in crate::front) struct Conversations {
    open: BTreeMap<ConversationId, Conversation>,
    runs: JoinSet<(ConversationId, Result<(), String>)>,
    /// Tasks that each pass on an action that waits for a busy conversation.
    late: JoinSet<()>,
    /// The conversation of the last event. The next event is searched from the conversation after it.
    last: Option<ConversationId>,
}

impl Conversations {
    /// Adds a conversation and starts its future.
    pub(in crate::front) fn start(&mut self, opened: OpenedConversation) -> ConversationId {
        let OpenedConversation { handle, events, log, models, prompts, commands, run, start: _ } = opened;
        let conversation = handle.conversation.clone();
        let named = conversation.clone();
        self.runs.spawn(async move { (named, run.await) });
        let agents = Agents::default();
        let open = Conversation { handle, events, log, models, agents, prompts, commands };
        self.open.insert(conversation.clone(), open);
        conversation
    }

    pub(in crate::front) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Passes an action to an agent of a conversation. `None` stands for the first agent.
    pub(in crate::front) fn act(
        &self,
        conversation: &ConversationId,
        agent: Option<AgentId>,
        kind: UserActionKind,
    ) -> Result<(), NotTaken> {
        let handle = &self.open.get(conversation).ok_or(NotTaken::Over)?.handle;
        handle.try_act(UserAction { agent, ..handle.action(kind) })
    }

    /// Returns the reason why a conversation cannot use a model; `None` if it can, even if it is busy now.
    pub(in crate::front) fn refuses_model(
        &self,
        conversation: &ConversationId,
        name: &str,
    ) -> Option<String> {
        let models = self.open.get(conversation)?.models.as_ref()?;
        models.choose(name).err()
    }

    pub(in crate::front) fn agents(&self, conversation: &ConversationId) -> Option<&Agents> {
        self.open.get(conversation).map(|open| &open.agents)
    }

    pub(in crate::front) fn prompts(&self, conversation: &ConversationId) -> Option<&[ServerPrompt]> {
        self.open.get(conversation).map(|open| open.prompts.as_slice())
    }

    pub(in crate::front) fn commands(&self, conversation: &ConversationId) -> Option<&[OwnCommand]> {
        self.open.get(conversation).map(|open| open.commands.as_slice())
    }

    pub(in crate::front) fn log(&self, conversation: &ConversationId) -> Option<&Path> {
        self.open.get(conversation).map(|open| open.log.as_path())
    }

    /// Passes an action to a conversation. While the conversation is busy, the action waits.
    pub(in crate::front) fn act_surely(&mut self, action: UserAction) {
        let handle = self.open.get(&action.conversation_id).map(|open| &open.handle);
        match handle.map_or(Err(NotTaken::Over), |handle| handle.try_act(action.clone())) {
            Ok(()) => {}
            Err(NotTaken::Busy) => {
                let handle = handle.cloned();
                self.late.spawn(async move {
                    if let Some(handle) = handle {
                        handle.act_on(action).await;
                    }
                });
            }
            Err(NotTaken::Over) => unheard(&action).iter().for_each(|unheard| say(unheard)),
        }
    }

    /// Passes an action to all conversations, waiting for busy ones.
    pub(in crate::front) fn act_in_all(&mut self, kind: &UserActionKind) {
        let actions: Vec<_> = self.open.values().map(|open| open.handle.action(kind.clone())).collect();
        for action in actions {
            self.act_surely(action);
        }
    }

    /// Waits for the next event or end of any conversation, and prefers no conversation over another. Cancel safe.
    pub(in crate::front) async fn next(&mut self) -> NextEvent {
        while self.late.try_join_next().is_some() {}
        std::future::poll_fn(|context| {
            if let Poll::Ready(event) = self.poll_event(context) {
                return Poll::Ready(NextEvent::Event(event));
            }
            match self.runs.poll_join_next(context) {
                Poll::Ready(Some(Ok((conversation, result)))) => {
                    Poll::Ready(NextEvent::Ended(self.ended(conversation, result.err())))
                }
                // A conversation panicked. Its closed channel shows which conversation it was.
                Poll::Ready(Some(Err(error))) => {
                    let closed = self.open.iter().find(|(_, open)| open.handle.is_over());
                    match closed.map(|(conversation, _)| conversation.clone()) {
                        Some(conversation) => {
                            let why = format!("the conversation stopped unexpectedly: {error}");
                            Poll::Ready(NextEvent::Ended(self.ended(conversation, Some(why))))
                        }
                        None => Poll::Pending,
                    }
                }
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Returns the next event, starting with the conversation after the one from which the last event came.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<UiEvent> {
        let Self { open, last, .. } = self;
        let is_after = |(id, _): &(&ConversationId, _)| last.as_ref().is_none_or(|last| *id > last);
        let (first, then): (Vec<_>, Vec<_>) = open.iter_mut().partition(is_after);
        for (id, Conversation { events, agents, .. }) in first.into_iter().chain(then) {
            // A conversation without further events is removed when its future ends.
            if let Poll::Ready(Some(event)) = events.poll_recv(context) {
                *last = Some(id.clone());
                agents.on(&event);
                return Poll::Ready(event);
            }
        }
        Poll::Pending
    }

    fn ended(&mut self, conversation: ConversationId, error: Option<String>) -> ConversationEnded {
        let mut events = Vec::new();
        if let Some(mut rest) = self.open.remove(&conversation) {
            while let Ok(event) = rest.events.try_recv() {
                events.push(event);
            }
        }
        ConversationEnded { conversation, events, error }
    }
}
