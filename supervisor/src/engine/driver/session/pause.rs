//! A full disk: the session pauses, so that nothing follows an event that the log does not have.

use std::collections::VecDeque;
use std::time::Duration;

use ipc::id::AgentId;
use protocol::frontend::{UiEventKind, UserAction, UserActionKind};
use tokio::time::sleep;

use super::super::actions::is_last;
use super::super::{AgentRun, SessionError};
use super::Session;
use super::machine::{next_action, until};

/// Interval of the session's own attempts to write.
const RETRY: Duration = Duration::from_secs(2);

enum Woken {
    Itself,
    Asked,
    Ends,
}

impl Session {
    /// Waits while the log's disk is full, and delays actions of the user. The end of the session returns the log's
    /// error.
    pub(super) async fn pause(&mut self) -> Result<(), SessionError> {
        // Going on may fill the disk again.
        while self.shared.log.is_full() {
            let mut asked = true;
            while let Err(error) = self.shared.log.write_held() {
                if asked {
                    self.say_paused();
                }
                asked = match self.wait().await {
                    Woken::Itself => false,
                    Woken::Asked => true,
                    Woken::Ends => return Err(error.into()),
                };
            }
            // What was approved meanwhile waits for the disk, and so does what was asked of it before.
            if let Err(error) = self.shared.log.sync() {
                if !self.shared.log.take_back(&error)? {
                    return Err(error.into());
                }
                self.say_paused();
                if let Woken::Ends = self.wait().await {
                    return Err(error.into());
                }
                continue;
            }
            self.shared.show(&AgentId::root(), UiEventKind::LogGoesOn);
            self.for_each(AgentRun::go_on)?;
            self.for_each(AgentRun::release)?;
        }
        Ok(())
    }

    async fn wait(&mut self) -> Woken {
        if self.actions.is_none() {
            // Nobody could be told.
            return Woken::Ends;
        }
        let mut none = VecDeque::new();
        tokio::select! {
            biased;
            action = next_action(&mut none, &mut self.actions, false) => match action {
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

    fn say_paused(&self) {
        let log = &self.shared.log;
        let last = log.last_safe();
        let (path, free) = (log.path().into(), log.free_bytes());
        self.shared.show(&AgentId::root(), UiEventKind::LogPaused { path, free, last });
    }
}
