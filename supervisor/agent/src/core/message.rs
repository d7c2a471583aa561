//! A message of the user: it begins a turn, or joins the one that is running.

use protocol::event::NoticeCode;

use super::agent::{AgentState, TurnRun};
use super::conversation::UserSaid;
use super::{Agent, ContextItem};

impl Agent {
    pub(super) fn on_user_turn(&mut self, said: UserSaid) {
        if said.is_empty() {
            self.out.notice(NoticeCode::EmptyMessage, "an empty message was not sent");
            return;
        }
        let too_long = self.conversation.too_long(&said, &self.seen);
        match (&self.state, too_long) {
            (AgentState::Closed, _) => {}
            (AgentState::Resting, Some(why)) => self.finish_full(why),
            (_, Some(why)) => self.out.notice(NoticeCode::MessageTooLong, &why),
            (AgentState::Resting, None) => {
                self.conversation.hear(said);
                self.conversation.demand_answer();
                self.run = TurnRun::default();
                self.turn_waits = self.starting;
                if !self.starting {
                    self.begin_step();
                }
            }
            (_, None) => self.conversation.hear(said),
        }
    }

    /// Context from outside the conversation. What is not about the surroundings holds in every context; with the first, a
    /// turn that waited for it begins.
    pub(super) fn on_context(&mut self, items: Vec<ContextItem>) {
        self.conversation.add_context(items, std::mem::take(&mut self.starting), &mut self.out);
        if std::mem::take(&mut self.turn_waits) && !self.begin_own_command() {
            self.begin_step();
        }
    }
}
