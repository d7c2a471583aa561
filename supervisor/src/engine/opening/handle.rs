//! A front end's end of a session.

use ipc::id::ConversationId;
use protocol::frontend::{UserAction, UserActionKind};
use tokio::sync::mpsc;

use super::unheard::unheard;
use crate::process::messages::say;
use crate::process::signals::UserSignals;

/// A front end's end of a session, for what the user does. With the last one gone the session ends.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub conversation: ConversationId,
    actions: mpsc::Sender<UserAction>,
}

/// The reason why a session does not take an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// It has more to do than it takes in.
    Busy,
    Over,
}

impl Handle {
    /// The end of a channel whose other end is a session's.
    pub(crate) const fn new(conversation: ConversationId, actions: mpsc::Sender<UserAction>) -> Self {
        Self { conversation, actions }
    }

    /// Whether the session is over.
    pub(crate) fn is_over(&self) -> bool {
        self.actions.is_closed()
    }

    /// Acts as the user without waiting.
    pub(crate) fn try_act(&self, action: UserAction) -> Result<(), NotTaken> {
        self.actions.try_send(action).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotTaken::Busy,
            mpsc::error::TrySendError::Closed(_) => NotTaken::Over,
        })
    }

    /// Acts as the user, on the session's first agent. An answer or a message that comes after the session's end is
    /// told of.
    pub(crate) async fn act(&self, kind: UserActionKind) {
        self.act_on(self.action(kind)).await;
    }

    /// Acts as the user, on the agent that the action names. An answer or a message that comes after the session's end
    /// is told of.
    pub(crate) async fn act_on(&self, action: UserAction) {
        if let Err(mpsc::error::SendError(action)) = self.actions.send(action).await
            && let Some(unheard) = unheard(&action)
        {
            say(&unheard);
        }
    }

    /// An action on the session's first agent.
    pub(crate) fn action(&self, kind: UserActionKind) -> UserAction {
        UserAction { conversation_id: self.conversation.clone(), agent: None, kind }
    }

    /// Turns signals into actions of the user.
    pub(crate) async fn forward(self, mut signals: UserSignals) {
        while !self.actions.is_closed() {
            let kind = signals.next().await;
            self.act(kind).await;
        }
    }
}
