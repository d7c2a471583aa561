//! Positions of cache markers. The provider caches a request up to each marker.
//!
//! The API allows four. One is at the end of the system prompt and covers the tools as well. In the messages:
//!
//! * the end of the newest user message, so that the next request finds the whole request in the cache;
//! * the end of the previous user message: the last request, or the same request before a retry, was cached up to
//!   there;
//! * the end of the tool calls of a turn with more blocks than [`LOOK_BACK`], for forks from the middle of that turn;
//! * or the end of a reply that the provider paused. It is then the end of the request.

use serde_json::value::RawValue;

use crate::provider::Message;
use crate::provider::messages::MessageText;

/// Number of blocks before a marker in which the API looks for a cached prefix.
const LOOK_BACK: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachePlaces([Option<usize>; 3]);

impl CachePlaces {
    pub(super) fn of(texts: &[MessageText]) -> Self {
        let mut of_user = (0..texts.len()).rev().filter(|index| texts[*index].of_user);
        let (newest, before) = (of_user.next(), of_user.next());
        let message = |index: usize| Some(&texts.get(index)?.message);
        let spare = newest.and_then(|newest| match texts.len() - 1 {
            last if last > newest => {
                Some(last).filter(|last| message(*last).is_some_and(|reply| takes_marker(reply)))
            }
            _ => {
                let (calls, results) = (newest.checked_sub(1)?, message(newest)?);
                let turn = message(calls)?;
                (takes_marker(turn) && blocks(turn) + blocks(results) > LOOK_BACK).then_some(calls)
            }
        });
        Self([newest, before, spare])
    }

    pub(super) fn contains(self, index: usize) -> bool {
        self.0.contains(&Some(index))
    }
}

fn blocks(message: &Message) -> usize {
    match message {
        Message::User(blocks) => blocks.len(),
        Message::Assistant(blocks) => blocks.len(),
    }
}

/// True if the message's last block can have a cache marker. Thinking and blocks of unknown kinds cannot have one.
fn takes_marker(message: &Message) -> bool {
    match message {
        Message::User(_) => true,
        Message::Assistant(blocks) => blocks.last().is_some_and(|block| is_markable(block)),
    }
}

fn is_markable(block: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct CachePlaceKind {
        r#type: String,
    }
    serde_json::from_str::<CachePlaceKind>(block.get()).is_ok_and(|block| {
        matches!(block.r#type.as_str(), "tool_use" | "server_tool_use")
            || block.r#type.ends_with("_tool_result")
    })
}
