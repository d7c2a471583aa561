//! An empty conversation in the place of the one that there is: what was said stays in the log alone.

use protocol::event::{CompactionCause, ContextCompacted, EventKind, NoticeCode, SummaryFrom, TokenUsage};

use super::Agent;
use super::agent::AgentState;
use super::history::History;

impl Agent {
    /// The user wants an empty conversation: at rest alone.
    pub(super) fn on_clear(&mut self) {
        let why = match self.state {
            AgentState::Closed => return,
            AgentState::Resting if self.turn_waits => Some("a turn is running"),
            AgentState::Resting if self.starting || self.history.is_empty() => Some("it is empty"),
            AgentState::Resting => None,
            AgentState::Streaming { .. } | AgentState::BackingOff { .. } | AgentState::Working => {
                Some("a turn is running")
            }
        };
        match why {
            Some(why) => {
                let message = format!("the conversation was not cleared: {why}");
                self.notice(NoticeCode::NotCleared, &message);
            }
            None => self.clear(),
        }
    }

    fn clear(&mut self) {
        let tokens_before = self.history.tokens();
        let first_message = self.standing_context();
        self.history =
            History::summarised(self.budget.fixed(), self.config.sees_images, first_message.clone());
        self.forget_tasks();
        // What was to be said about the conversation before is said to nobody; the surroundings are told anew.
        self.context.clear();
        self.log(EventKind::ContextCompacted(ContextCompacted {
            cause: CompactionCause::Clear,
            summary: SummaryFrom::Nobody,
            tokens_before,
            tokens_after: self.history.tokens(),
            usage: TokenUsage::default(),
            cost_usd: None,
            first_message,
        }));
    }
}
