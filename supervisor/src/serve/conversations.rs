//! The conversations of one server.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ipc::frontend::{UiEvent, UserAction, UserActionKind};
use ipc::id::ConversationId;
use ipc::rpc::{ErrorObject, NewConversationParams};
use tokio::task::JoinSet;

use crate::messages::say;
use crate::opening::{Events, Handle, NotTaken, unheard};

/// Opens conversations.
pub(super) trait Open: Send + Sync + 'static {
    /// Opens one, or says why not. May block.
    fn open(&self, params: NewConversationParams) -> Result<Opened, ErrorObject>;
}

/// A conversation that is open, and does nothing until its run is polled.
pub(super) struct Opened {
    /// For what the user does.
    pub(super) handle: Handle,
    /// For what there is to show.
    pub(super) events: Events,
    /// The conversation itself; its error says what it ended by without a result.
    pub(super) run: Pin<Box<dyn Future<Output = Result<(), String>> + Send>>,
}

/// A conversation that is over: what was still to be shown, and what it ended by without a result.
pub(super) struct Ended {
    pub(super) conversation: ConversationId,
    pub(super) events: Vec<UiEvent>,
    pub(super) error: Option<String>,
}

/// What happens in conversations.
pub(super) enum Next {
    /// There is something to show, or to ask.
    Event(UiEvent),
    /// One is over.
    Ended(Ended),
}

/// The conversations that are open.
#[derive(Default)]
pub(super) struct Conversations {
    open: BTreeMap<ConversationId, (Handle, Events)>,
    runs: JoinSet<(ConversationId, Result<(), String>)>,
    /// Actions that wait because their conversation has much to do.
    late: JoinSet<()>,
    /// Whose events were looked at last: the next one has its turn.
    last: Option<ConversationId>,
}

impl Conversations {
    /// Starts a conversation.
    pub(super) fn start(&mut self, opened: Opened) -> ConversationId {
        let Opened { handle, events, run } = opened;
        let conversation = handle.conversation.clone();
        let named = conversation.clone();
        self.runs.spawn(async move { (named, run.await) });
        self.open.insert(conversation.clone(), (handle, events));
        conversation
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Acts in one of them, on its first agent.
    pub(super) fn act(&self, conversation: &ConversationId, kind: UserActionKind) -> Result<(), NotTaken> {
        let (handle, _) = self.open.get(conversation).ok_or(NotTaken::Over)?;
        handle.try_act(handle.action(kind))
    }

    /// Acts in one of them for certain: what it cannot take in yet waits.
    pub(super) fn act_surely(&mut self, action: UserAction) {
        let handle = self.open.get(&action.conversation_id).map(|(handle, _)| handle);
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
        let actions: Vec<_> = self.open.values().map(|(handle, _)| handle.action(kind.clone())).collect();
        actions.into_iter().for_each(|action| self.act_surely(action));
    }

    /// Waits for what happens next in any of them, each in turn. Cancel safe.
    pub(super) async fn next(&mut self) -> Next {
        while self.late.try_join_next().is_some() {}
        std::future::poll_fn(|context| {
            if let Poll::Ready(event) = self.poll_event(context) {
                return Poll::Ready(Next::Event(event));
            }
            match self.runs.poll_join_next(context) {
                Poll::Ready(Some(Ok((conversation, result)))) => {
                    Poll::Ready(Next::Ended(self.ended(conversation, result.err())))
                }
                // A panic of ours: whose run it was, the closed channel says.
                Poll::Ready(Some(Err(error))) => {
                    let closed = self.open.iter().find(|(_, (handle, _))| handle.is_over());
                    match closed.map(|(conversation, _)| conversation.clone()) {
                        Some(conversation) => {
                            let why = format!("it broke off: {error}");
                            Poll::Ready(Next::Ended(self.ended(conversation, Some(why))))
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
        for (id, (_, events)) in first.into_iter().chain(then) {
            // One whose events are over is taken out when its run is.
            if let Poll::Ready(Some(event)) = events.poll_recv(context) {
                *last = Some(id.clone());
                return Poll::Ready(event);
            }
        }
        Poll::Pending
    }

    fn ended(&mut self, conversation: ConversationId, error: Option<String>) -> Ended {
        let mut events = Vec::new();
        if let Some((_, mut rest)) = self.open.remove(&conversation) {
            while let Ok(event) = rest.try_recv() {
                events.push(event);
            }
        }
        Ended { conversation, events, error }
    }
}
