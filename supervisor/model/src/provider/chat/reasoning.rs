//! Reasoning that a gateway has signed or encrypted. Later requests must contain it unchanged.

use serde_json::value::{RawValue, to_raw_value};

use super::wire::string;
use crate::provider::arguments::one_line;
use crate::provider::members::ReplyMembers;
use crate::provider::{AssistantBlock, ContentBlock};

const PIECES: [&str; 2] = ["text", "summary"];

/// Maximum number of fields in an item that is merged with others. Each merge searches all fields.
const MOST_MEMBERS: usize = 64;

/// Kind of the blocks with signed or encrypted reasoning, which is also the name of the field in a message.
const KIND: &str = "reasoning_details";

/// The `reasoning_details` of a reply, in order. An item that arrived whole keeps its bytes.
pub(super) struct Details {
    pub(super) block: usize,
    items: Vec<Item>,
}

struct Item {
    /// The bytes of the item as received; `None` once another item is merged into this one.
    raw: Option<Box<RawValue>>,
    members: ReplyMembers,
    /// The texts of the fields [`PIECES`], joined. Replacing the fields at each delta would take quadratic time.
    texts: [String; 2],
}

impl Details {
    pub(super) const fn new(block: usize) -> Self {
        Self { block, items: Vec::new() }
    }

    /// Adds the items of a delta. Returns their texts, which the user sees.
    pub(super) fn push(&mut self, items: &[&RawValue]) -> Result<Vec<String>, serde_json::Error> {
        let mut shown = Vec::new();
        for raw in items {
            let piece: ReplyMembers = serde_json::from_str(raw.get())?;
            shown.extend(PIECES.iter().find_map(|name| string(piece.get(name))));
            match self.items.last_mut() {
                Some(last) if last.goes_on_with(&piece) => last.add(&piece),
                _ => self.items.push(Item::new(raw, piece)),
            }
        }
        Ok(shown)
    }

    pub(super) fn close(self) -> Result<AssistantBlock, serde_json::Error> {
        let items = self.items.into_iter().map(Item::into_json).collect::<Result<Vec<_>, _>>()?;
        let json = format!(r#"{{"type":"{KIND}","{KIND}":[{}]}}"#, items.join(","));
        let raw = RawValue::from_string(json)?;
        Ok(AssistantBlock { content: ContentBlock::Other { kind: KIND.to_owned() }, raw })
    }
}

impl Item {
    fn new(raw: &RawValue, members: ReplyMembers) -> Self {
        let texts = PIECES.map(|name| string(members.get(name)).unwrap_or_default());
        Self { raw: Some(raw.to_owned()), members, texts }
    }

    /// True if this item is readable reasoning that `piece` continues: both have the same type, index and id.
    fn goes_on_with(&self, piece: &ReplyMembers) -> bool {
        let kind = string(piece.get("type")).unwrap_or_default();
        let is_readable = matches!(kind.as_str(), "reasoning.text" | "reasoning.summary");
        let same = |name: &str| match (known(&self.members, name), known(piece, name)) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        let are_few = self.members.len() <= MOST_MEMBERS && piece.len() <= MOST_MEMBERS;
        are_few
            && is_readable
            && known(&self.members, "type") == known(piece, "type")
            && same("index")
            && same("id")
    }

    /// Merges `piece` into this item: joins the texts, and replaces the other fields.
    fn add(&mut self, piece: &ReplyMembers) {
        self.raw = None;
        for (name, text) in PIECES.iter().zip(&mut self.texts) {
            text.push_str(&string(piece.get(name)).unwrap_or_default());
        }
        for (name, value) in piece.iter() {
            if !PIECES.contains(&name) && value.get() != "null" {
                self.members.set(name, value.to_owned());
            }
        }
    }

    fn into_json(mut self) -> Result<String, serde_json::Error> {
        if let Some(raw) = self.raw {
            return Ok(one_line(raw.get()));
        }
        for (name, text) in PIECES.iter().zip(self.texts).filter(|(_, text)| !text.is_empty()) {
            self.members.set(name, to_raw_value(&text)?);
        }
        Ok(one_line(&self.members.to_json()?))
    }
}

fn known<'a>(members: &'a ReplyMembers, name: &str) -> Option<&'a str> {
    members.get(name).map(RawValue::get).filter(|value| *value != "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(pushed: &[&str]) -> (Vec<String>, String) {
        let mut details = Details::new(0);
        let mut shown = Vec::new();
        for items in pushed {
            let items: Vec<&RawValue> = serde_json::from_str(items).expect("a list");
            shown.extend(details.push(&items).expect("objects"));
        }
        (shown, details.close().expect("JSON").raw.get().to_owned())
    }

    #[test]
    fn r6_an_item_that_comes_whole_stays_byte_for_byte() {
        let items = r#"[{"type":"reasoning.encrypted", "data":"\u00e9","index":0},{"type":"reasoning.text","text":"a"}]"#;
        let inner = items.trim_start_matches('[').trim_end_matches(']');
        let expected = format!(r#"{{"type":"reasoning_details","reasoning_details":[{inner}]}}"#);
        assert_eq!(details(&[items]), (vec!["a".to_owned()], expected));
    }

    #[test]
    fn pieces_of_a_text_are_joined_and_its_signature_is_added() {
        let (shown, block) = details(&[
            r#"[{"type":"reasoning.text","text":"a","index":0,"format":null}]"#,
            r#"[{"type":"reasoning.text","text":"b","index":0,"format":"f"}]"#,
            r#"[{"type":"reasoning.text","signature":"s","index":0,"format":null}]"#,
        ]);
        assert_eq!(shown, ["a", "b"]);
        assert_eq!(
            block,
            r#"{"type":"reasoning_details","reasoning_details":[{"type":"reasoning.text","text":"ab","index":0,"format":"f","signature":"s"}]}"#
        );
    }

    #[test]
    fn what_is_another_item_is_not_joined() {
        for (first, second) in [
            (
                r#"{"type":"reasoning.text","text":"a","index":0}"#,
                r#"{"type":"reasoning.text","text":"b","index":1}"#,
            ),
            (
                r#"{"type":"reasoning.text","text":"a","id":"x"}"#,
                r#"{"type":"reasoning.text","text":"b","id":"y"}"#,
            ),
            (r#"{"type":"reasoning.text","text":"a"}"#, r#"{"type":"reasoning.summary","summary":"b"}"#),
            (r#"{"type":"reasoning.encrypted","data":"a"}"#, r#"{"type":"reasoning.encrypted","data":"b"}"#),
        ] {
            let (_, block) = details(&[&format!("[{first}]"), &format!("[{second}]")]);
            assert!(block.ends_with(&format!("[{first},{second}]}}")), "{block}");
        }
    }
}
