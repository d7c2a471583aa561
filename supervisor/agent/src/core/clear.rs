//! An empty conversation in the place of the one that there is: what was said stays in the log alone.

use protocol::event::NoticeCode;

use super::Agent;
use super::agent::AgentState;

impl Agent {
    /// The user wants an empty conversation: at rest alone.
    pub(super) fn on_clear(&mut self) {
        let why = match self.state {
            AgentState::Closed => return,
            AgentState::Resting if self.turn_waits => Some("a turn is running"),
            AgentState::Resting if self.starting || self.conversation.is_empty() => Some("it is empty"),
            AgentState::Resting => None,
            AgentState::Streaming { .. } | AgentState::BackingOff { .. } | AgentState::Working => {
                Some("a turn is running")
            }
        };
        match why {
            Some(why) => {
                let message = format!("the conversation was not cleared: {why}");
                self.out.notice(NoticeCode::NotCleared, &message);
            }
            None => self.conversation.clear(&self.seen, &mut self.out),
        }
    }
}
