//! A change of the model: at rest alone, and in a new context.
//!
//! A provider takes thinking, signatures and blocks of its own tools back from the model that made them (WIRE R6), so that the
//! new context holds what was said, called and answered, and nothing else of the replies.

use protocol::event::{EventKind, ModelChanged, NoticeCode};

use super::agent::AgentState;
use super::{Agent, ModelChoice};

impl Agent {
    pub(super) fn on_model(&mut self, choice: ModelChoice) {
        match self.state {
            AgentState::Closed => {}
            AgentState::Resting if self.turn_waits => self.refuse_model(),
            AgentState::Resting if choice.name == self.config.model => {
                let message = format!("nothing changed: the model is {}", choice.name);
                self.out.notice(NoticeCode::ModelUnchanged, &message);
            }
            AgentState::Resting => self.change_model(choice),
            AgentState::Streaming { .. } | AgentState::BackingOff { .. } | AgentState::Working => {
                self.refuse_model();
            }
        }
    }

    fn refuse_model(&mut self) {
        let message = "cannot change the model: a turn is running; interrupt it, or wait for its end";
        self.out.notice(NoticeCode::ModelRefused, message);
    }

    fn change_model(&mut self, choice: ModelChoice) {
        let ModelChoice { name, max_tokens, options, sees_images, prices, window } = choice;
        let config = &mut self.config;
        let from = std::mem::replace(&mut config.model, name);
        config.options = options;
        config.prices = prices;
        let new_context = self.conversation.change_model(window, max_tokens, sees_images);
        let to = self.config.model.clone();
        let mut message = format!("model: {to}");
        if new_context {
            message.push_str(" · it reads the conversation without the earlier thinking");
        }
        if self.config.prices.is_none() {
            message.push_str(" · price unknown, so its cost is not counted");
        }
        self.out.log(EventKind::ModelChanged(ModelChanged {
            from,
            to,
            new_context,
            window: Some(window.context),
        }));
        self.out.notice(NoticeCode::ModelChanged, &message);
    }
}
