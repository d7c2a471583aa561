//! Decides if later requests contain the reasoning of a model.
//!
//! | server | rule, with its error text |
//! | --- | --- |
//! | Moonshot, Kimi | on each message with tool calls: "thinking is enabled but `reasoning_content` is missing in assistant tool call message"; an empty one counts as missing |
//! | `DeepSeek` R1 and servers that check members | on none: "not allowed", "unsupported" |
//! | all others | on messages with tool calls, where it is accepted or ignored |
//!
//! The rules for other hosts are learned from their errors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::provider::{Message, ProviderError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningBack {
    Never,
    WithCalls,
    /// Every message of the model in a request has reasoning; a blank replaces reasoning that is missing.
    Everywhere,
}

/// Rules that were learned from errors, for each model by its name.
#[derive(Clone, Default)]
pub(super) struct Lessons(Arc<Mutex<HashMap<String, ReasoningBack>>>);

/// The name of the field for reasoning in the error texts of all servers.
const MEMBER: &str = "reasoning_content";

/// Phrases by which a server demands the field for reasoning.
const WANTED: [&str; 4] = ["missing", "must be passed back", "required", "must be provided"];

/// Phrases by which a server rejects the field for reasoning.
const UNWANTED: [&str; 8] = [
    "not allowed",
    "unsupported",
    "not supported",
    "unknown",
    "extra inputs",
    "not permitted",
    "unrecognized",
    "unexpected",
];

impl Lessons {
    pub(super) fn of(&self, model: &str) -> Option<ReasoningBack> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied()
    }

    /// Learns from an error if the server accepts reasoning. If the rule for the model changes, the error becomes
    /// retryable, because the next attempt sends other messages.
    pub(super) fn learn(&self, model: &str, error: ProviderError) -> ProviderError {
        let Some(lesson) = lesson(&error).filter(|lesson| self.of(model) != Some(*lesson)) else {
            return error;
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), lesson);
        ProviderError { retry_after: Some(Duration::from_millis(1)), blames: None, ..error.retryable() }
    }
}

fn lesson(error: &ProviderError) -> Option<ReasoningBack> {
    let said = error.message.to_lowercase();
    let is_about_it = matches!(error.status, Some(400 | 422)) && said.contains(MEMBER);
    if !is_about_it {
        None
    } else if UNWANTED.iter().any(|words| said.contains(words)) {
        Some(ReasoningBack::Never)
    } else if WANTED.iter().any(|words| said.contains(words)) {
        Some(ReasoningBack::Everywhere)
    } else {
        None
    }
}

/// True if the conversation has reasoning. Without any, no server demands it.
pub(super) fn has_reasoning(messages: &[Arc<Message>]) -> bool {
    messages.iter().any(|message| match &**message {
        Message::Assistant(blocks) => blocks.iter().any(|block| {
            let block = block.get();
            block.starts_with(r#"{"type":"thinking""#) && block.contains(r#""field":"#)
        }),
        Message::User(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, words: &str) -> ProviderError {
        ProviderError { status: Some(status), ..ProviderError::new("invalid_request_error", words) }
    }

    #[test]
    fn r6_each_vendors_refusal_is_a_lesson_once() {
        use ReasoningBack::{Everywhere, Never};
        for (status, words, expected) in [
            (
                400,
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
                Some(Everywhere),
            ),
            (
                400,
                "Missing `reasoning_content` field in the assistant message at message index 2.",
                Some(Everywhere),
            ),
            (
                400,
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
                Some(Everywhere),
            ),
            (422, "body.messages.2.reasoning_content: Field required", Some(Everywhere)),
            (400, "The reasoning_content field is not allowed in input messages", Some(Never)),
            (400, "'messages.2' : property 'reasoning_content' is unsupported", Some(Never)),
            (400, "Unknown parameter: 'messages[2].reasoning_content'.", Some(Never)),
            (422, "body.messages.2.assistant.reasoning_content: Extra inputs are not permitted", Some(Never)),
            (400, "reasoning_content: too long", None),
            (400, "messages.2: the field content is missing", None),
            (500, "reasoning_content is missing", None),
        ] {
            let lessons = Lessons::default();
            let first = lessons.learn("m", refused(status, words));
            assert_eq!((lessons.of("m"), first.retryable), (expected, expected.is_some()), "{words}");
            assert!(!lessons.learn("m", refused(status, words)).retryable, "{words}: told twice");
            assert_eq!(lessons.of("another model"), None);
        }
    }
}
