//! The next message of the user: their words, the pictures that go with them, and the context that joins them.

use ipc::image::Image;
use protocol::event::{EventKind, NoticeCode};

use super::agent::{AgentState, TurnRun};
use super::history::{in_block, of_image};
use super::record::ends;
use super::window::{bytes, tokens};
use super::{Agent, ContextItem};
use crate::conversation::UserBlock;

/// Label of an added message that describes the agent's directory and rights.
pub(super) const ENVIRONMENT: &str = "environment";

/// Label of an added message that tells the model how its rights have changed.
pub(super) const RIGHTS: &str = "rights";

/// Label of other messages that Bailiwick adds.
pub(super) const OURS: &str = "bailiwick";

/// A message of the user.
#[derive(Debug)]
pub(super) struct UserSaid {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
}

impl UserSaid {
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.images.is_empty()
    }

    /// About how many tokens its blocks have.
    pub(super) fn tokens(&self) -> u64 {
        self.images.iter().map(of_image).map(in_block).fold(in_block(tokens(&self.text)), u64::saturating_add)
    }
}

impl Agent {
    pub(super) fn on_user_turn(&mut self, said: UserSaid) {
        if said.is_empty() {
            self.notice(NoticeCode::EmptyMessage, "an empty message was not sent");
            return;
        }
        let too_long = self.too_long(&said);
        match (&self.state, too_long) {
            (AgentState::Closed, _) => {}
            (AgentState::Resting, Some(why)) => self.finish_full(why),
            (_, Some(why)) => self.notice(NoticeCode::MessageTooLong, &why),
            (AgentState::Resting, None) => {
                self.queue.push(said);
                self.demand_answer();
                self.run = TurnRun::default();
                self.turn_waits = self.starting;
                if !self.starting {
                    self.begin_step();
                }
            }
            (_, None) => self.queue.push(said),
        }
    }

    /// Context from outside the conversation. What is not about the surroundings holds in every context; with the first, a
    /// turn that waited for it begins.
    pub(super) fn on_context(&mut self, items: Vec<ContextItem>) {
        // What changed before the agent was told where it is comes behind that.
        let changed = if self.starting { std::mem::take(&mut self.context) } else { Vec::new() };
        self.add_context(items);
        self.context.extend(changed);
        self.starting = false;
        if std::mem::take(&mut self.turn_waits) && !self.begin_own_command() {
            self.begin_step();
        }
    }

    fn add_context(&mut self, items: Vec<ContextItem>) {
        for mut item in items {
            let most = self.budget.context_item();
            if tokens(&item.text) > most {
                item.text = ends(&item.text, bytes(&item.text, most));
                let message = format!("{} is too long for the context: its middle is left out", item.source);
                self.notice(NoticeCode::ContextCut, &message);
            }
            if item.source != ENVIRONMENT {
                self.instructions.push(item.clone());
            }
            self.context.push(item);
        }
    }

    /// What joins the user's message behind the results (WIRE R4): context, then what the user said meanwhile.
    pub(super) fn say_what_waits(&mut self) {
        let is_first = self.history.is_empty();
        let mut blocks = Vec::new();
        for ContextItem { source, text } in std::mem::take(&mut self.context) {
            if !text.is_empty() {
                blocks.push(UserBlock::Text(text.clone()));
                self.log(EventKind::ContextAdded { source, text });
            }
        }
        if is_first {
            self.history.open(std::mem::take(&mut blocks));
        }
        for said in std::mem::take(&mut self.queue) {
            self.say(said, &mut blocks);
        }
        self.history.push_user(blocks);
    }

    /// What the user said: pictures before the words that are about them.
    fn say(&mut self, UserSaid { mut text, images }: UserSaid, blocks: &mut Vec<UserBlock>) {
        let (shown, left_out) = self.history.admit(images);
        for cause in left_out {
            self.notice(NoticeCode::ImageLeftOut, &cause);
            // The model should know what it does not see; and without pictures and words the message would be empty.
            let line = if text.is_empty() { "" } else { "\n" };
            text = format!("{text}{line}({cause})");
        }
        blocks.extend(shown.iter().cloned().map(UserBlock::Image));
        if !text.trim().is_empty() {
            blocks.push(UserBlock::Text(text.clone()));
        }
        self.log(EventKind::UserMessage { text, images: shown });
    }

    /// Tells the model something that it would not understand otherwise.
    pub(super) fn note(&mut self, text: String) {
        self.context.insert(0, ContextItem { source: OURS.to_owned(), text });
    }
}
