//! One conversation of an agent: its messages, the next message, and the space in the model's context.

use std::sync::Arc;

use gate::StandingRights;
use gate::tools::{Registry, ToolDefinition};
use ipc::id::CallId;
use ipc::image::Image;
use ipc::path::WirePath;
use protocol::event::{
    CompactionCause, ContextCompacted, EventKind, LeftOut, ListedTask, NoticeCode, SummaryFrom, TokenUsage,
};
use serde_json::value::RawValue;

use super::compaction::Compaction;
use super::history::History;
use super::ledger::Ledger;
use super::message::{OURS, RIGHTS, Unsaid, UserSaid};
use super::opening::Opening;
use super::record::{both_ends, ends};
use super::tasks::Tasks;
use super::window::{Budget, bytes, tokens};
use crate::conversation::{Message, UserBlock};
use crate::core::outbox::Outbox;
use crate::core::phase::Phase;
use crate::core::{ContextItem, Window};
use crate::prompt::PromptEnvironment;

pub(in crate::core) struct Conversation {
    pub(super) history: History,
    pub(super) ledger: Ledger,
    pub(super) budget: Budget,
    pub(super) unsaid: Unsaid,
    pub(super) opening: Opening,
    pub(super) tasks: Tasks,
    pub(super) compaction: Compaction,
    pub(super) sees_images: bool,
    pub(super) project: WirePath,
}

/// Settings of a conversation. The window and the reply limit change with the model.
pub(in crate::core) struct ConversationSettings {
    pub(in crate::core) window: Window,
    pub(in crate::core) max_tokens: u32,
    /// Estimated tokens of system prompt and tools.
    pub(in crate::core) fixed: u64,
    pub(in crate::core) sees_images: bool,
    pub(in crate::core) surroundings: PromptEnvironment,
    /// Text that tells the model the schema for its answer; `None` without a schema.
    pub(in crate::core) demand: Option<String>,
    pub(in crate::core) project: WirePath,
}

impl Conversation {
    pub(in crate::core) fn new(settings: ConversationSettings) -> Self {
        let ConversationSettings { window, max_tokens, fixed, sees_images, surroundings, demand, project } =
            settings;
        let budget = Budget::new(window, max_tokens, fixed);
        Self {
            history: History::new(budget.fixed(), sees_images),
            ledger: Ledger::default(),
            budget,
            unsaid: Unsaid::default(),
            opening: Opening::new(surroundings, demand),
            tasks: Tasks::default(),
            compaction: Compaction::default(),
            sees_images,
            project,
        }
    }

    /// Reads the events that are about to be logged, for the facts that a summary without the model needs.
    pub(in crate::core) fn read(&mut self, out: &mut Outbox) {
        for event in out.unread() {
            self.ledger.see(event, &self.project);
        }
    }

    pub(in crate::core) fn messages(&self) -> Vec<Arc<Message>> {
        self.history.messages()
    }

    pub(in crate::core) fn instructions(&self) -> &[ContextItem] {
        self.opening.instructions()
    }

    /// Returns the conversation as text with quoted lines. The middle of a long conversation is left out.
    pub(in crate::core) fn text(&self) -> String {
        const MOST: u64 = 6_000;
        const LONGEST: u64 = 800;
        both_ends(&self.history.said(), MOST, LONGEST)
    }

    pub(in crate::core) fn is_empty(&self) -> bool {
        self.history.is_empty()
    }

    /// Returns the size of the model's window in tokens.
    #[cfg(test)]
    pub(in crate::core) const fn window(&self) -> u64 {
        self.budget.context()
    }

    #[cfg(test)]
    pub(in crate::core) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the estimated tokens of a prompt with the whole conversation.
    pub(in crate::core) const fn tokens(&self) -> u64 {
        self.history.tokens()
    }

    pub(in crate::core) const fn reply_limit(&self) -> u32 {
        self.budget.reply()
    }

    /// Returns the estimated tokens that are left for results if a summary must fit after them.
    pub(in crate::core) fn room_for_results(&self) -> u64 {
        self.budget.results_after(self.history.tokens().saturating_add(self.unsaid.tokens()))
    }

    /// Returns the sentence about a message that is too long to be sent; `None` if the message can be sent.
    pub(in crate::core) fn too_long(&self, said: &UserSaid, seen: &StandingRights) -> Option<String> {
        let context = self.opening.texts(seen).iter().map(|text| tokens(text)).sum();
        let (length, most) = (said.tokens(), self.budget.message(context));
        let waiting = self.unsaid.words_tokens();
        let with = if waiting > 0 { " including the messages that wait" } else { "" };
        (length.saturating_add(waiting) > most).then(|| {
            format!(
                "the message was not sent: it has about {length} tokens, and the context has room for {most}{with}; put the text into a file of the project and name the file"
            )
        })
    }

    /// Keeps the user's words for the next message.
    pub(in crate::core) fn hear(&mut self, said: UserSaid) {
        self.unsaid.add_words(said);
    }

    pub(in crate::core) const fn has_unread_words(&self) -> bool {
        self.unsaid.has_words()
    }

    /// Adds information that the model needs to understand the next message, at the message's beginning.
    pub(in crate::core) fn note(&mut self, text: String) {
        self.unsaid.add_first(ContextItem { source: OURS.to_owned(), text });
    }

    pub(in crate::core) fn tell_of_rights(&mut self, text: String) {
        self.unsaid.add(ContextItem { source: RIGHTS.to_owned(), text });
    }

    /// Adds the requirement that the answer fits the schema, if there is a schema, to the next message.
    pub(in crate::core) fn demand_answer(&mut self) {
        if let Some(text) = self.opening.demand().map(str::to_owned) {
            self.unsaid.add(ContextItem { source: OURS.to_owned(), text });
        }
    }

    /// Adds context to the next message. `at_start` puts it before earlier items.
    pub(in crate::core) fn add_context(&mut self, items: Vec<ContextItem>, at_start: bool, out: &mut Outbox) {
        // The description of the surroundings comes before changes that happened meanwhile.
        let changed = if at_start { self.unsaid.take_context() } else { Vec::new() };
        for mut item in items {
            let most = self.budget.context_item();
            if tokens(&item.text) > most {
                item.text = ends(&item.text, bytes(&item.text, most));
                let message = format!("{} is too long for the context: its middle is left out", item.source);
                out.notice(NoticeCode::ContextCut, &message);
            }
            self.opening.keep(&item);
            self.unsaid.add(item);
        }
        for item in changed {
            self.unsaid.add(item);
        }
    }

    /// Adds the waiting context and words of the user to the user's message, after the results of calls.
    pub(in crate::core) fn say_what_waits(&mut self, out: &mut Outbox) {
        let is_first = self.history.is_empty();
        let mut blocks = Vec::new();
        for ContextItem { source, text } in self.unsaid.take_context() {
            if !text.is_empty() {
                blocks.push(UserBlock::Text(text.clone()));
                out.log(EventKind::ContextAdded { source, text });
            }
        }
        if is_first {
            self.history.open(std::mem::take(&mut blocks));
        }
        for said in self.unsaid.take_words() {
            self.say(said, &mut blocks, out);
        }
        self.history.push_user(blocks);
    }

    /// Adds the user's words and pictures to `blocks`. Pictures come before the words about them.
    fn say(
        &mut self,
        UserSaid { mut text, images }: UserSaid,
        blocks: &mut Vec<UserBlock>,
        out: &mut Outbox,
    ) {
        let (shown, left_out) = self.history.admit(images);
        for cause in left_out {
            out.notice(NoticeCode::ImageLeftOut, &cause);
            // The model should know what it does not see; and without pictures and words the message would be empty.
            let line = if text.is_empty() { "" } else { "\n" };
            text = format!("{text}{line}({cause})");
        }
        blocks.extend(shown.iter().cloned().map(UserBlock::Image));
        if !text.trim().is_empty() {
            blocks.push(UserBlock::Text(text.clone()));
        }
        out.log(EventKind::UserMessage { text, images: shown });
    }

    /// Returns the pictures that fit within the limits, and for each other picture the reason why it does not fit.
    pub(in crate::core) fn admit(&mut self, images: Vec<Image>) -> (Vec<Image>, Vec<String>) {
        self.history.admit(images)
    }

    pub(in crate::core) fn answer_calls(&mut self, results: Vec<UserBlock>) {
        self.history.push_user(results);
    }

    pub(in crate::core) fn reply(&mut self, echo: Vec<Box<RawValue>>, usage: TokenUsage) {
        self.history.push_assistant(echo, usage);
    }

    pub(in crate::core) fn reply_in_part(&mut self, echo: Vec<Box<RawValue>>) {
        self.history.push_interrupted(echo);
    }

    /// Removes the interrupted reply after the provider has rejected it. Returns false if there is no such reply.
    pub(in crate::core) fn drop_interrupted(&mut self) -> bool {
        self.history.drop_interrupted()
    }

    /// Removes a part that the provider rejects. Returns false if the conversation does not have this part.
    pub(in crate::core) fn leave_out(&mut self, part: LeftOut) -> bool {
        !self.is_compacting() && self.history.leave_out(part, self.sees_images)
    }

    /// Continues with another model in a new context, since no provider accepts another model's thinking. Returns true
    /// if the old context had replies.
    pub(in crate::core) fn change_model(
        &mut self,
        window: Window,
        max_tokens: u32,
        sees_images: bool,
    ) -> bool {
        self.budget = Budget::new(window, max_tokens, self.budget.fixed());
        self.sees_images = sees_images;
        let had_replies = self.history.has_replies();
        self.history = self.history.for_another_model(self.budget.fixed(), sees_images);
        had_replies
    }

    /// Handles the user's request for an empty context. It is possible only between turns.
    pub(in crate::core) fn on_clear(
        &mut self,
        phase: Phase,
        is_starting: bool,
        seen: &StandingRights,
        out: &mut Outbox,
    ) {
        let why = match phase {
            Phase::Closed => return,
            Phase::Waiting | Phase::Asking | Phase::Working => "a turn is running",
            Phase::Resting if is_starting || self.is_empty() => "it is empty",
            Phase::Resting => return self.clear(seen, out),
        };
        out.notice(NoticeCode::NotCleared, &format!("the conversation was not cleared: {why}"));
    }

    /// Begins an empty context. The old conversation stays in the log.
    fn clear(&mut self, seen: &StandingRights, out: &mut Outbox) {
        let tokens_before = self.history.tokens();
        let first_message = self.opening.texts(seen);
        self.history = History::summarised(self.budget.fixed(), self.sees_images, first_message.clone());
        self.tasks.forget(out);
        // Waiting notes about the old conversation are dropped. The new context describes the surroundings.
        self.unsaid.take_context();
        out.log(EventKind::ContextCompacted(ContextCompacted {
            cause: CompactionCause::Clear,
            summary: SummaryFrom::Nobody,
            tokens_before,
            tokens_after: self.history.tokens(),
            usage: TokenUsage::default(),
            cost_usd: None,
            first_message,
        }));
    }

    pub(in crate::core) fn update_tasks(&mut self, call: CallId, tasks: Vec<ListedTask>, out: &mut Outbox) {
        if let Some(changed) = self.tasks.replace(Some(call), tasks) {
            out.log(changed);
        }
    }
}

pub(in crate::core) fn fixed_tokens(system: &str, tools: &Registry) -> u64 {
    let of_tool = |tool: &ToolDefinition| {
        tokens(&tool.name) + tokens(&tool.description) + tokens(tool.input_schema.get())
    };
    tokens(system) + tools.definitions().iter().map(of_tool).sum::<u64>()
}
