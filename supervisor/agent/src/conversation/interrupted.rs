//! Selects the part of an interrupted reply that is sent back to the model: the complete blocks up to the last text,
//! and the last text itself even if it is incomplete.
//!
//! Left out are tool calls, calls of the provider's own tools without a result, thinking without a signature, reasoning
//! that no complete text follows, and empty text. If the reply has no text, nothing is sent back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{AssistantBlock, ContentBlock};

/// A block of an interrupted reply: a complete block, or the received text of the incomplete last block.
#[derive(Clone, Copy, Debug)]
pub enum Interrupted<'a> {
    Closed(&'a AssistantBlock),
    Open(&'a str),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InterruptedMembers {
    r#type: String,
    id: Option<String>,
    tool_use_id: Option<String>,
    signature: Option<String>,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Text,
    /// A block that is sent back to the model if a text follows anywhere later in the reply.
    Kept,
    /// Reasoning, which is sent back to the model only if a complete text follows directly.
    LeadsOn,
    Dropped,
}

/// Returns the blocks that are sent back to the model, in the order of the reply.
pub fn echo_of_interrupted(blocks: &[Interrupted<'_>]) -> Vec<Box<RawValue>> {
    let members: Vec<_> = blocks.iter().map(members).collect();
    let answered: BTreeSet<_> = members.iter().filter_map(|members| members.tool_use_id.as_deref()).collect();
    let mut kept: Vec<(Fate, Box<RawValue>)> = Vec::new();
    for (block, members) in blocks.iter().zip(&members) {
        let fate = fate(block, members, &answered);
        // Reasoning before anything else than a complete text is dropped.
        if !matches!((fate, block), (Fate::Text, Interrupted::Closed(_))) {
            while kept.pop_if(|(last, _)| *last == Fate::LeadsOn).is_some() {}
        }
        if fate != Fate::Dropped {
            kept.extend(echo(block).map(|echo| (fate, echo)));
        }
    }
    let text = kept.iter().rposition(|(fate, _)| *fate == Fate::Text);
    kept.truncate(text.map_or(0, |last| last + 1));
    kept.into_iter().map(|(_, echo)| echo).collect()
}

fn members(block: &Interrupted<'_>) -> InterruptedMembers {
    match block {
        // A block that does not parse counts as one without these members.
        Interrupted::Closed(block) => serde_json::from_str(block.raw.get()).unwrap_or_default(),
        Interrupted::Open(_) => InterruptedMembers::default(),
    }
}

fn fate(block: &Interrupted<'_>, members: &InterruptedMembers, answered: &BTreeSet<&str>) -> Fate {
    let text = |text: &str| if text.trim().is_empty() { Fate::Dropped } else { Fate::Text };
    let kept_if = |kept: bool| if kept { Fate::Kept } else { Fate::Dropped };
    let block = match block {
        Interrupted::Closed(block) => block,
        Interrupted::Open(open) => return text(open),
    };
    match (&block.content, members.r#type.as_str()) {
        (ContentBlock::Text { text: said }, _) => text(said),
        // The Responses API refuses a reasoning item without the message that followed it.
        (_, "reasoning") => Fate::LeadsOn,
        (_, "thinking") => kept_if(members.signature.as_ref().is_some_and(|signature| !signature.is_empty())),
        (_, "redacted_thinking") => Fate::Kept,
        // The chat completions API takes reasoning back only within its turn, and the interruption has ended this turn.
        (ContentBlock::ToolUse { .. }, _) | (_, "reasoning_details" | "output_item") => Fate::Dropped,
        (_, kind) if kind.ends_with("tool_use") => {
            kept_if(members.id.as_deref().is_some_and(|id| answered.contains(id)))
        }
        (ContentBlock::Thinking { .. }, _) => Fate::Dropped,
        (ContentBlock::RedactedThinking | ContentBlock::Other { .. }, _) => Fate::Kept,
    }
}

fn echo(block: &Interrupted<'_>) -> Option<Box<RawValue>> {
    match block {
        Interrupted::Closed(block) => Some(block.raw.clone()),
        Interrupted::Open(text) => to_raw_value(&Text { r#type: "text", text }).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn block(content: ContentBlock, raw: &str) -> AssistantBlock {
        AssistantBlock { content, raw: RawValue::from_string(raw.to_owned()).unwrap() }
    }

    fn text(text: &str) -> AssistantBlock {
        block(
            ContentBlock::Text { text: text.to_owned() },
            &json!({"type": "text", "text": text}).to_string(),
        )
    }

    fn message(text: &str) -> AssistantBlock {
        let raw = json!({"type": "text", "text": text, "item": {"type": "message", "id": "m"}});
        block(ContentBlock::Text { text: text.to_owned() }, &raw.to_string())
    }

    fn thinking(raw: &str) -> AssistantBlock {
        block(ContentBlock::Thinking { thinking: "hm".to_owned() }, raw)
    }

    fn other(raw: &str) -> AssistantBlock {
        block(ContentBlock::Other { kind: "other".to_owned() }, raw)
    }

    fn call() -> AssistantBlock {
        let content =
            ContentBlock::ToolUse { id: "t".into(), name: "f".to_owned(), input: Ok("{}".to_owned()) };
        block(content, r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#)
    }

    fn left(closed: &[AssistantBlock], open: Option<&str>) -> String {
        let blocks: Vec<_> =
            closed.iter().map(Interrupted::Closed).chain(open.map(Interrupted::Open)).collect();
        let echoed = echo_of_interrupted(&blocks);
        let words = echoed.iter().map(|raw| {
            let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap();
            let said = value["text"].as_str().map(|text| format!(" {text:?}")).unwrap_or_default();
            format!("{}{said}", value["type"].as_str().unwrap())
        });
        words.collect::<Vec<_>>().join(", ")
    }

    const SIGNED: &str = r#"{"type":"thinking","thinking":"hm","signature":"s"}"#;
    const UNSIGNED: &str = r#"{"type":"thinking","thinking":"hm","signature":""}"#;
    const REASONING: &str =
        r#"{"type":"reasoning","item":{"type":"reasoning","id":"r","encrypted_content":"e"}}"#;
    const SEARCH: &str = r#"{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}"#;
    const FOUND: &str = r#"{"type":"web_search_tool_result","tool_use_id":"srv","content":[]}"#;

    #[test]
    fn closed_text_and_open_text_stay() {
        assert_eq!(left(&[text("a")], Some("b")), r#"text "a", text "b""#);
        assert_eq!(left(&[], Some("b")), r#"text "b""#);
        assert_eq!(left(&[text("a")], None), r#"text "a""#);
        assert_eq!(left(&[text("")], Some(" \n")), "");
        assert_eq!(left(&[], None), "");
    }

    #[test]
    fn calls_go_and_text_around_them_stays() {
        assert_eq!(left(&[text("a"), call()], None), r#"text "a""#);
        assert_eq!(left(&[text("a"), call()], Some("b")), r#"text "a", text "b""#);
        assert_eq!(left(&[call()], None), "");
    }

    #[test]
    fn thinking_stays_where_it_is_signed_and_before_kept_text() {
        assert_eq!(left(&[thinking(SIGNED)], Some("b")), r#"thinking, text "b""#);
        assert_eq!(left(&[thinking(SIGNED)], None), "");
        assert_eq!(left(&[thinking(UNSIGNED)], Some("b")), r#"text "b""#);
        assert_eq!(left(&[text("a"), thinking(SIGNED), call()], None), r#"text "a""#);
        assert_eq!(
            left(&[thinking(r#"{"type":"thinking","thinking":"hm","field":"reasoning"}"#)], Some("b")),
            r#"text "b""#
        );
        let redacted = block(ContentBlock::RedactedThinking, r#"{"type":"redacted_thinking","data":"d"}"#);
        assert_eq!(left(&[redacted], Some("b")), r#"redacted_thinking, text "b""#);
    }

    #[test]
    fn a_tool_of_the_server_stays_with_its_result_alone() {
        assert_eq!(
            left(&[other(SEARCH), other(FOUND)], Some("b")),
            r#"server_tool_use, web_search_tool_result, text "b""#
        );
        assert_eq!(left(&[text("a"), other(SEARCH)], None), r#"text "a""#);
        assert_eq!(left(&[other(SEARCH)], Some("b")), r#"text "b""#);
    }

    #[test]
    fn reasoning_items_stay_before_the_message_that_they_led_to() {
        assert_eq!(left(&[thinking(REASONING), message("a")], None), r#"reasoning, text "a""#);
        assert_eq!(left(&[thinking(REASONING)], Some("b")), r#"text "b""#);
        assert_eq!(left(&[thinking(REASONING), call()], Some("b")), r#"text "b""#);
        assert_eq!(
            left(&[thinking(REASONING), message("a"), thinking(REASONING)], Some("b")),
            r#"reasoning, text "a", text "b""#
        );
        assert_eq!(left(&[other(r#"{"type":"output_item","item":{}}"#)], Some("b")), r#"text "b""#);
    }

    #[test]
    fn details_of_chat_completions_go() {
        let details = other(r#"{"type":"reasoning_details","reasoning_details":[]}"#);
        assert_eq!(left(&[details], Some("b")), r#"text "b""#);
    }
}
