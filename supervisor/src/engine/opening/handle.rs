use ipc::id::ConversationId;
use protocol::frontend::{UserAction, UserActionKind};
use tokio::sync::mpsc;

use super::unheard::unheard;
use crate::process::messages::say;
use crate::process::signals::UserSignals;

/// Sends a front end's actions to a session. The session ends when all its handles are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub conversation: ConversationId,
    actions: mpsc::Sender<UserAction>,
}

/// Reason why a session does not take an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// The queue of actions is full at the moment.
    Busy,
    Over,
}

impl Handle {
    pub(crate) const fn new(conversation: ConversationId, actions: mpsc::Sender<UserAction>) -> Self {
        Self { conversation, actions }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.actions.is_closed()
    }

    /// Sends an action, or fails at once if the session cannot take it.
    pub(crate) fn try_act(&self, action: UserAction) -> Result<(), NotTaken> {
        self.actions.try_send(action).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotTaken::Busy,
            mpsc::error::TrySendError::Closed(_) => NotTaken::Over,
        })
    }

    /// Sends an action for the first agent. Tells the user if an answer or message came too late.
    pub(crate) async fn act(&self, kind: UserActionKind) {
        self.act_on(self.action(kind)).await;
    }

    /// Sends an action for the agent that the action names. Tells the user if an answer or message came too late.
    pub(crate) async fn act_on(&self, action: UserAction) {
        if let Err(mpsc::error::SendError(action)) = self.actions.send(action).await
            && let Some(unheard) = unheard(&action)
        {
            say(&unheard);
        }
    }

    /// Returns an action for the first agent.
    pub(crate) fn action(&self, kind: UserActionKind) -> UserAction {
        UserAction { conversation_id: self.conversation.clone(), agent: None, kind }
    }

    /// Sends an action for each signal, until the session ends.
    pub(crate) async fn forward(self, mut signals: UserSignals) {
        while !self.actions.is_closed() {
            let kind = signals.next().await;
            self.act(kind).await;
        }
    }
}
