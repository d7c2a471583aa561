//! Actions of the user: those that arrive, those that were delayed, and the time limit of the session.

use std::collections::VecDeque;
use std::time::Duration;

use protocol::frontend::{UserAction, UserActionKind};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::actions::is_last;

/// Interval at which a paused session tries to write to the full disk.
const RETRY: Duration = Duration::from_secs(2);

/// Actions of the user in the order of their arrival, and the session's time limit.
pub(super) struct UserActions {
    /// Channel of new actions; `None` once the front end is gone or the session has closed the channel.
    arriving: Option<mpsc::Receiver<UserAction>>,
    /// Actions that arrived during a pause or a rewind and are taken afterwards.
    delayed: VecDeque<UserAction>,
    /// Time at which the session ends at the latest; `None` if it has no limit or the limit has passed.
    deadline: Option<Instant>,
}

pub(super) enum UserInput {
    Action(UserAction),
    FrontEndGone,
    TimeUp,
}

/// Actions that the session takes at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcceptedActions {
    All,
    /// Only actions that end the session. All other actions are delayed.
    Ends,
    None,
}

/// Reason why a paused session stops waiting.
pub(super) enum Woken {
    /// It is time for the next attempt to write.
    Itself,
    /// The user asked the session to try again.
    Asked,
    Ends,
}

impl UserActions {
    pub(super) const fn new(arriving: mpsc::Receiver<UserAction>, deadline: Option<Instant>) -> Self {
        Self { arriving: Some(arriving), delayed: VecDeque::new(), deadline }
    }

    /// Returns the next input. Reports the loss of the front end once, and the end of the time limit once. Cancel safe.
    pub(super) async fn next(&mut self, accepted: AcceptedActions) -> UserInput {
        tokio::select! {
            biased;
            action = next_action(&mut self.delayed, &mut self.arriving, accepted), if accepted != AcceptedActions::None => {
                action.map_or_else(
                    || {
                        self.arriving = None;
                        UserInput::FrontEndGone
                    },
                    UserInput::Action,
                )
            }
            () = until(self.deadline) => {
                self.deadline = None;
                UserInput::TimeUp
            }
        }
    }

    /// Waits while the session is paused, and delays actions that do not end the pause.
    pub(super) async fn wait_paused(&mut self) -> Woken {
        let Some(arriving) = &mut self.arriving else {
            // Without a front end, nobody could make space.
            return Woken::Ends;
        };
        tokio::select! {
            biased;
            action = arriving.recv() => match action {
                None => Woken::Ends,
                Some(UserAction { kind: UserActionKind::RetryLog, .. }) => Woken::Asked,
                Some(action) if is_last(&action) => Woken::Ends,
                Some(action) => {
                    self.delayed.push_back(action);
                    Woken::Itself
                }
            },
            () = until(self.deadline) => Woken::Ends,
            () = sleep(RETRY) => Woken::Itself,
        }
    }

    /// Closes the channel. Returns the actions that the session has not taken.
    pub(super) fn close(&mut self) -> VecDeque<UserAction> {
        let mut late = std::mem::take(&mut self.delayed);
        if let Some(mut arriving) = self.arriving.take() {
            arriving.close();
            late.extend(std::iter::from_fn(|| arriving.try_recv().ok()));
        }
        late
    }
}

async fn next_action(
    delayed: &mut VecDeque<UserAction>,
    arriving: &mut Option<mpsc::Receiver<UserAction>>,
    accepted: AcceptedActions,
) -> Option<UserAction> {
    let ends_alone = accepted == AcceptedActions::Ends;
    if let Some(action) = delayed.pop_front_if(|_| !ends_alone) {
        return Some(action);
    }
    let Some(arriving) = arriving else { return std::future::pending().await };
    loop {
        match arriving.recv().await {
            Some(action) if ends_alone && !is_last(&action) => delayed.push_back(action),
            action => return action,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
