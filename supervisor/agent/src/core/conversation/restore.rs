//! Restores a conversation from the events of its log.

use std::collections::BTreeMap;

use ipc::id::{EventId, ToolUseId};
use ipc::image::Image;
use protocol::event::{
    AssistantMessage, CompactionCause, EventKind, NoticeCode, RewindTarget, SessionEvent, ToolCallStatus,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Conversation;
use super::history::History;
use super::ledger::Ledger;
use super::own_calls::{EARLIER_PLAN, OWN_COMMAND, quoted};
use super::tasks::Tasks;
use crate::conversation::UserBlock;

/// Text for the model in the next message after the user has interrupted a reply.
pub(in crate::core) const INTERRUPTED_HERE: &str = "The user interrupted you here.";

/// Stop reason in the log of an interrupted reply.
pub(in crate::core) const INTERRUPTED: &str = "interrupted";

/// Text for the model in the first message of a resumed session.
const GOES_ON: &str = "This conversation goes on after a pause, in another run of the program. Files may have changed meanwhile: read \
    them again before you edit them. What you may do stands in the environment above.";

/// Result of a call whose end is not in the log.
const NO_RESULT: &str = "interrupted: the session ended before this call did";

/// The state of a conversation while its events are read.
struct Reader {
    history: History,
    fixed: u64,
    sees_images: bool,
    /// Context before the first words of the user.
    opening: Vec<UserBlock>,
    /// Blocks for the next message of the user.
    said: Vec<UserBlock>,
    /// Ids of the calls in the last reply, in order.
    calls: Vec<ToolUseId>,
    results: BTreeMap<ToolUseId, UserBlock>,
}

impl Conversation {
    /// Restores the conversation. `all` are its events, `standing` those that no rewind took back. If `in_new_context`,
    /// the conversation continues in a new context, without the thinking.
    pub(in crate::core) fn restore(
        &mut self,
        all: &[&EventKind],
        standing: &[&EventKind],
        in_new_context: bool,
    ) {
        let events = || standing.iter().copied();
        self.take_past(standing);
        if in_new_context {
            self.history = self.history.for_another_model(self.budget.fixed(), self.sees_images);
        }
        self.opening.restore(all.iter().copied());
        self.tasks = Tasks::after(events());
        if let Some(context) = learnt_window(events()).filter(|_| !in_new_context) {
            self.budget = self.budget.in_window(context.min(self.budget.context()));
        }
        if ends_cut_off(events()) {
            self.note(INTERRUPTED_HERE.to_owned());
        }
        if !self.history.is_empty() {
            self.note(GOES_ON.to_owned());
        }
    }

    /// Restores the conversation from the events that no rewind took back. Returns the change of the task list for the
    /// log; `None` if the list stays.
    pub(in crate::core) fn rewind(&mut self, standing: &[&EventKind]) -> Option<EventKind> {
        self.take_past(standing);
        // The model is not told about an interruption that the rewind takes back.
        self.unsaid.retain_context(|item| item.text != INTERRUPTED_HERE);
        self.tasks.replace_by(Tasks::after(standing.iter().copied()))
    }

    fn take_past(&mut self, standing: &[&EventKind]) {
        let events = || standing.iter().copied();
        let reader = Reader::new(self.budget.fixed(), self.sees_images);
        self.history = events().fold(reader, Reader::take).finish();
        self.ledger = Ledger::of(events(), &self.project);
    }
}

/// True if the conversation ends with an interrupted reply, and the model has not been told that it was interrupted.
fn ends_cut_off<'a>(events: impl Iterator<Item = &'a EventKind>) -> bool {
    events.fold(false, |ends, kind| match kind {
        EventKind::AssistantMessage(message) => message.stop_reason == INTERRUPTED,
        EventKind::UserMessage { .. } | EventKind::ContextCompacted(_) => false,
        _ => ends,
    })
}

/// Returns the window that earlier runs derived from rejected requests of this model; `None` if they derived none.
fn learnt_window<'a>(events: impl Iterator<Item = &'a EventKind>) -> Option<u64> {
    events.fold(None, |learnt, kind| match kind {
        EventKind::ModelChanged(_) => None,
        EventKind::CompactionStarted(started) if started.cause == CompactionCause::Overflow => {
            Some(started.window)
        }
        _ => learnt,
    })
}

pub trait Counted {
    fn id(&self) -> EventId;
    fn rewind(&self) -> Option<RewindTarget>;
    /// True if the event says which model answers.
    fn is_about_the_model(&self) -> bool;
}

impl Counted for SessionEvent {
    fn id(&self) -> EventId {
        self.id
    }

    fn rewind(&self) -> Option<RewindTarget> {
        match &self.kind {
            EventKind::Rewound(rewound) => Some(rewound.target),
            _ => None,
        }
    }

    fn is_about_the_model(&self) -> bool {
        matches!(
            self.kind,
            EventKind::ModelChanged(_) | EventKind::SessionStarted(_) | EventKind::PromptFixed(_)
        )
    }
}

/// Returns the valid events: all except those that a rewind took back. If that rewind was undone, they are valid again.
/// Events about the model are always valid.
pub fn standing<T: Counted>(events: &[T]) -> Vec<&T> {
    let mut standing: Vec<&T> = Vec::new();
    let mut taken_back = Vec::new();
    for event in events {
        if let Some(target) = event.rewind() {
            match target.to {
                Some(to) if target.scope.has_conversation() => {
                    if let Some(at) = standing.iter().position(|event| event.id() == to) {
                        taken_back = standing.split_off(at);
                        standing
                            .extend(taken_back.iter().copied().filter(|event| event.is_about_the_model()));
                    }
                }
                Some(_) => taken_back.clear(),
                None => {
                    let is_new = |event: &&T| !event.is_about_the_model();
                    standing.extend(std::mem::take(&mut taken_back).into_iter().filter(is_new));
                }
            }
        }
        standing.push(event);
    }
    standing
}

impl Reader {
    fn new(fixed: u64, sees_images: bool) -> Self {
        Self {
            history: History::new(fixed, sees_images),
            fixed,
            sees_images,
            opening: Vec::new(),
            said: Vec::new(),
            calls: Vec::new(),
            results: BTreeMap::new(),
        }
    }

    fn take(mut self, kind: &EventKind) -> Self {
        match kind {
            EventKind::ContextAdded { text, .. } => {
                let is_first = self.history.is_empty() && self.said.is_empty();
                let blocks = if is_first { &mut self.opening } else { &mut self.said };
                blocks.push(UserBlock::Text(text.clone()));
            }
            EventKind::UserMessage { text, images } => {
                let shown = self.admitted(images);
                self.said.extend(shown.into_iter().map(UserBlock::Image));
                if !text.trim().is_empty() {
                    self.said.push(UserBlock::Text(text.clone()));
                }
            }
            EventKind::AssistantMessage(message) => self.replied(message),
            EventKind::ToolCallFinished { tool_use, status, content, images, .. } => {
                let images = self.admitted(images);
                let is_error = *status != ToolCallStatus::Completed;
                let (tool_use, content) = (tool_use.clone(), content.clone());
                if self.calls.contains(&tool_use) {
                    let result =
                        UserBlock::ToolResult { tool_use: tool_use.clone(), content, is_error, images };
                    self.results.insert(tool_use, result);
                } else if tool_use.0 == EARLIER_PLAN {
                    self.said.push(UserBlock::Text(content));
                } else if tool_use.0 == OWN_COMMAND {
                    self.said.push(quoted(&content));
                }
            }
            EventKind::ModelFailed { left_out: Some(part), .. } => {
                self.flush();
                self.history.leave_out(*part, self.sees_images);
            }
            EventKind::Rewound(rewound) if rewound.target.scope.has_conversation() => {
                self.settle();
                self.history.count_again(self.fixed);
            }
            EventKind::Notice { code: NoticeCode::InterruptedReplyDropped, .. } => {
                self.history.drop_interrupted();
            }
            EventKind::ModelChanged(changed) if changed.new_context => self.leave_context(),
            EventKind::PromptFixed(prompt) if prompt.new_context.is_some() => self.leave_context(),
            EventKind::ContextCompacted(compacted) => {
                let first = compacted.first_message.clone();
                self = Self { history: History::summarised(self.fixed, self.sees_images, first), ..self };
                (self.calls, self.results) = (Vec::new(), BTreeMap::new());
                (self.opening, self.said) = (Vec::new(), Vec::new());
            }
            _ => {}
        }
        self
    }

    fn leave_context(&mut self) {
        self.flush();
        self.history = self.history.for_another_model(self.fixed, self.sees_images);
    }

    fn admitted(&mut self, images: &[Image]) -> Vec<Image> {
        self.history.admit(images.to_vec()).0
    }

    fn replied(&mut self, message: &AssistantMessage) {
        self.flush();
        let content = message.content.clone();
        self.calls = content.iter().filter_map(|block| tool_use(block)).collect();
        // The provider sends no final token count for an interrupted reply.
        if message.estimated {
            self.history.push_interrupted(content);
        } else {
            self.history.push_assistant(content, message.usage);
        }
    }

    /// Adds the results of the last reply's calls (one for each) to the history, then the user's words.
    fn flush(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let mut results = std::mem::take(&mut self.results);
        let result = |call: ToolUseId| {
            results.remove(&call).unwrap_or_else(|| UserBlock::ToolResult {
                tool_use: call,
                content: NO_RESULT.to_owned(),
                is_error: true,
                images: Vec::new(),
            })
        };
        let results: Vec<_> = calls.into_iter().map(result).collect();
        self.history.push_user(results);
        if self.history.is_empty() && !self.said.is_empty() {
            self.history.open(std::mem::take(&mut self.opening));
        }
        self.history.push_user(std::mem::take(&mut self.said));
    }

    /// Completes the conversation. An empty one still describes the surroundings.
    fn settle(&mut self) {
        self.flush();
        if self.history.is_empty() {
            self.history.open(std::mem::take(&mut self.opening));
        }
    }

    fn finish(mut self) -> History {
        self.flush();
        self.history
    }
}

/// Returns the id of a block that is a tool call; `None` for any other block.
fn tool_use(block: &RawValue) -> Option<ToolUseId> {
    #[derive(Deserialize)]
    struct RestoredBlock {
        r#type: String,
        #[serde(default)]
        id: String,
    }
    let block: RestoredBlock = serde_json::from_str(block.get()).ok()?;
    (block.r#type == "tool_use").then_some(ToolUseId(block.id))
}
