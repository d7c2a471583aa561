//! The conversations of one server.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ipc::id::{AgentId, ConversationId};
use protocol::frontend::{UiEvent, UserAction, UserActionKind};
use protocol::rpc::{ErrorObject, NewConversationParams};
use tokio::task::JoinSet;

use super::agents::Agents;
use crate::engine::driver::Models;
use crate::engine::opening::{Handle, NotTaken, SessionEvents, unheard};
use crate::process::messages::say;

/// Opens conversations.
pub(super) trait OpenConversation: Send + Sync + 'static {
    /// Opens one, or says why not. May block.
    fn open(&self, params: NewConversationParams) -> Result<OpenedConversation, ErrorObject>;
}

/// A conversation that is open, and does nothing until its run is polled.
pub(super) struct OpenedConversation {
    /// For what the user does.
    pub(super) handle: Handle,
    /// For what there is to show.
    pub(super) events: SessionEvents,
    /// Where it is logged.
    pub(super) log: PathBuf,
    /// The models that it may change to, if it may.
    pub(super) models: Option<Arc<dyn Models>>,
    /// The conversation itself; its error says what it ended by without a result.
    pub(super) run: Pin<Box<dyn Future<Output = Result<(), String>> + Send>>,
}

/// A conversation that is over: what was still to be shown, and what it ended by without a result.
pub(super) struct ConversationEnded {
    pub(super) conversation: ConversationId,
    pub(super) events: Vec<UiEvent>,
    pub(super) error: Option<String>,
}

/// What happens in conversations.
pub(super) enum NextEvent {
    /// There is something to show, or to ask.
    Event(UiEvent),
    /// One is over.
    Ended(ConversationEnded),
}

/// One that is open.
struct Conversation {
    handle: Handle,
    events: SessionEvents,
    log: PathBuf,
    models: Option<Arc<dyn Models>>,
    agents: Agents,
}

/// The conversations that are open.
#[derive(Default)]
pub(super) struct Conversations {
    open: BTreeMap<ConversationId, Conversation>,
    runs: JoinSet<(ConversationId, Result<(), String>)>,
    /// Actions that wait because their conversation has much to do.
    late: JoinSet<()>,
    /// Whose events were looked at last: the next one has its turn.
    last: Option<ConversationId>,
}

impl Conversations {
    /// Starts a conversation.
    pub(super) fn start(&mut self, opened: OpenedConversation) -> ConversationId {
        let OpenedConversation { handle, events, log, models, run } = opened;
        let conversation = handle.conversation.clone();
        let named = conversation.clone();
        self.runs.spawn(async move { (named, run.await) });
        let agents = Agents::default();
        self.open.insert(conversation.clone(), Conversation { handle, events, log, models, agents });
        conversation
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Acts on an agent of one of them, its first if none is named.
    pub(super) fn act(
        &self,
        conversation: &ConversationId,
        agent: Option<AgentId>,
        kind: UserActionKind,
    ) -> Result<(), NotTaken> {
        let handle = &self.open.get(conversation).ok_or(NotTaken::Over)?.handle;
        handle.try_act(UserAction { agent, ..handle.action(kind) })
    }

    /// Says why one of them cannot have a model, if it cannot. An agent that is busy says so itself.
    pub(super) fn refuses_model(&self, conversation: &ConversationId, name: &str) -> Option<String> {
        let models = self.open.get(conversation)?.models.as_ref()?;
        models.choose(name).err()
    }

    /// The agents of one of them.
    pub(super) fn agents(&self, conversation: &ConversationId) -> Option<&Agents> {
        self.open.get(conversation).map(|open| &open.agents)
    }

    /// Where one of them is logged.
    pub(super) fn log(&self, conversation: &ConversationId) -> Option<&Path> {
        self.open.get(conversation).map(|open| open.log.as_path())
    }

    /// Acts in one of them for certain: what it cannot take in yet waits.
    pub(super) fn act_surely(&mut self, action: UserAction) {
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

    /// Acts in all of them, for certain.
    pub(super) fn act_in_all(&mut self, kind: &UserActionKind) {
        let actions: Vec<_> = self.open.values().map(|open| open.handle.action(kind.clone())).collect();
        for action in actions {
            self.act_surely(action);
        }
    }

    /// Waits for what happens next in any of them, each in turn. Cancel safe.
    pub(super) async fn next(&mut self) -> NextEvent {
        while self.late.try_join_next().is_some() {}
        std::future::poll_fn(|context| {
            if let Poll::Ready(event) = self.poll_event(context) {
                return Poll::Ready(NextEvent::Event(event));
            }
            match self.runs.poll_join_next(context) {
                Poll::Ready(Some(Ok((conversation, result)))) => {
                    Poll::Ready(NextEvent::Ended(self.ended(conversation, result.err())))
                }
                // A panic of ours: whose run it was, the closed channel says.
                Poll::Ready(Some(Err(error))) => {
                    let closed = self.open.iter().find(|(_, open)| open.handle.is_over());
                    match closed.map(|(conversation, _)| conversation.clone()) {
                        Some(conversation) => {
                            let why = format!("it broke off: {error}");
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

    /// An event of the conversation after the one that had its turn last.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<UiEvent> {
        let Self { open, last, .. } = self;
        let is_after = |(id, _): &(&ConversationId, _)| last.as_ref().is_none_or(|last| *id > last);
        let (first, then): (Vec<_>, Vec<_>) = open.iter_mut().partition(is_after);
        for (id, Conversation { events, agents, .. }) in first.into_iter().chain(then) {
            // One whose events are over is taken out when its run is.
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
