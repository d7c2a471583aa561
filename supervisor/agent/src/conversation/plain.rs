//! Converts a block of a model's reply into one that any other model accepts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The JSON fields of a block that any model understands.
#[derive(Deserialize)]
struct PlainMembers<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Plain<'a> {
    Text { text: &'a RawValue },
    ToolUse { id: &'a RawValue, name: &'a RawValue, input: &'a RawValue },
}

/// Returns the block in a form that any model accepts; `None` for thinking, a provider's own tools, and empty text.
pub fn plain_block(block: &RawValue) -> Option<Box<RawValue>> {
    let PlainMembers { r#type, text, id, name, input } = serde_json::from_str(block.get()).ok()?;
    let plain = match r#type.as_ref() {
        "text" => {
            let text = text?;
            let said: Cow<'_, str> = serde_json::from_str(text.get()).ok()?;
            (!said.trim().is_empty()).then_some(Plain::Text { text })?
        }
        "tool_use" => Plain::ToolUse { id: id?, name: name?, input: input? },
        _ => return None,
    };
    to_raw_value(&plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(json: &str) -> Option<String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        plain_block(&raw).map(|plain| plain.get().to_owned())
    }

    #[test]
    fn text_and_calls_stay_without_what_their_api_added() {
        let text = r#"{"type":"text","text":"a","item":{"type":"message","id":"m"},"citations":[]}"#;
        assert_eq!(plain(text).as_deref(), Some(r#"{"type":"text","text":"a"}"#));
        let call = r#"{"type":"tool_use","id":"t","name":"f","input":{"b":1,"a":2},"arguments":"{}","extra_content":{}}"#;
        assert_eq!(
            plain(call).as_deref(),
            Some(r#"{"type":"tool_use","id":"t","name":"f","input":{"b":1,"a":2}}"#)
        );
    }

    #[test]
    fn what_only_its_own_model_can_read_goes() {
        for json in [
            r#"{"type":"thinking","thinking":"hm","signature":"s"}"#,
            r#"{"type":"redacted_thinking","data":"d"}"#,
            r#"{"type":"reasoning","item":{}}"#,
            r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#,
            r#"{"type":"reasoning_details","reasoning_details":[]}"#,
            r#"{"type":"text","text":" "}"#,
            "7",
        ] {
            assert_eq!(plain(json), None, "{json}");
        }
    }
}
