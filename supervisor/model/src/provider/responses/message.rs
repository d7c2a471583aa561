//! Converts messages into input items of the Responses API.
//!
//! Later requests contain the items of this API unchanged. Blocks of other APIs are converted, except reasoning: only
//! the API that sent reasoning can read it.

use ipc::image::Image;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::provider::{Message, UserBlock, messages};

pub(super) fn serialise(message: &Message) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let items = match message {
        Message::User(blocks) => user_items(blocks)?,
        Message::Assistant(blocks) => assistant_items(blocks)?,
    };
    Ok((!items.is_empty()).then(|| items.join(",").into_bytes()))
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesInputItem<'a> {
    Message { role: &'static str, content: ResponsesContent<'a> },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: ResponsesContent<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesInputPart<'a> {
    InputText {
        text: &'a str,
    },
    /// A picture. Servers that check the vendor's types require `detail`; the vendor's own server does not.
    InputImage {
        detail: &'static str,
        image_url: String,
    },
}

/// Content of a message: text alone, which every server accepts, or text with pictures.
#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesContent<'a> {
    Text(&'a str),
    Parts(Vec<ResponsesInputPart<'a>>),
}

/// Returns the items of a user's message: first the results of calls, then the text.
fn user_items(blocks: &[UserBlock]) -> Result<Vec<String>, serde_json::Error> {
    let mut items = Vec::new();
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            UserBlock::Text(text) if text.is_empty() => {}
            UserBlock::Text(text) => parts.push(ResponsesInputPart::InputText { text }),
            UserBlock::Image(image) => parts.push(picture(image)),
            UserBlock::ToolResult { tool_use, content, is_error, images } => {
                let text = messages::told(content, *is_error);
                let output = match &images[..] {
                    [] => ResponsesContent::Text(&text),
                    images => {
                        let text = std::iter::once(ResponsesInputPart::InputText { text: &text });
                        ResponsesContent::Parts(text.chain(images.iter().map(picture)).collect())
                    }
                };
                let call_id = tool_use.as_str();
                items.push(serde_json::to_string(&ResponsesInputItem::FunctionCallOutput {
                    call_id,
                    output,
                })?);
            }
        }
    }
    if !parts.is_empty() {
        items.push(serde_json::to_string(&ResponsesInputItem::Message {
            role: "user",
            content: ResponsesContent::Parts(parts),
        })?);
    }
    Ok(items)
}

fn picture<'a>(image: &Image) -> ResponsesInputPart<'a> {
    ResponsesInputPart::InputImage { detail: "auto", image_url: messages::data_url(image) }
}

#[derive(Deserialize)]
struct ResponsesBlock<'a> {
    r#type: String,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

fn assistant_items(blocks: &[Box<RawValue>]) -> Result<Vec<String>, serde_json::Error> {
    let mut items = Vec::new();
    for raw in blocks {
        let block: ResponsesBlock<'_> = serde_json::from_str(raw.get())?;
        let item = match block.item {
            Some(item) => Some(item.get().to_owned()),
            None => translated(&block)?,
        };
        items.extend(item.map(|item| (item, reasoning(&block))));
    }
    items.retain(|(_, reasoning)| reasoning.as_ref().is_none_or(ReasoningItem::says_something));
    // The API's error: "… was provided without its required following item". Reasoning must precede an item that it led
    // to.
    while items.last().is_some_and(|(_, reasoning)| reasoning.as_ref().is_some_and(ReasoningItem::leads_on)) {
        items.pop();
    }
    Ok(items.into_iter().map(|(item, _)| item).collect())
}

fn translated(block: &ResponsesBlock<'_>) -> Result<Option<String>, serde_json::Error> {
    let item = match (block.r#type.as_str(), &block.text, &block.id, &block.name, block.input) {
        ("text", Some(text), ..) if !text.is_empty() => {
            ResponsesInputItem::Message { role: "assistant", content: ResponsesContent::Text(text) }
        }
        ("tool_use", _, Some(call_id), Some(name), Some(input)) => {
            ResponsesInputItem::FunctionCall { call_id, name, arguments: input.get() }
        }
        _ => return Ok(None),
    };
    serde_json::to_string(&item).map(Some)
}

/// Fields of a reasoning item that decide if the API accepts the item in a request.
#[derive(Deserialize)]
struct ReasoningItem {
    encrypted_content: Option<String>,
    #[serde(default)]
    content: Option<Vec<serde::de::IgnoredAny>>,
    format: Option<String>,
}

impl ReasoningItem {
    /// True if the item has content. An item without content only refers to data that the server did not keep.
    fn says_something(&self) -> bool {
        let is_encrypted = self.encrypted_content.as_ref().is_some_and(|content| !content.is_empty());
        is_encrypted || self.content.as_ref().is_some_and(|content| !content.is_empty())
    }

    /// True if the reasoning comes before the items to which it led. For some models a gateway puts it after them.
    fn leads_on(&self) -> bool {
        self.format.as_ref().is_none_or(|format| format.starts_with("openai"))
    }
}

fn reasoning(block: &ResponsesBlock<'_>) -> Option<ReasoningItem> {
    let item = block.item.filter(|_| block.r#type == "reasoning")?;
    let nothing = ReasoningItem { encrypted_content: None, content: None, format: None };
    Some(serde_json::from_str(item.get()).unwrap_or(nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: Message) -> String {
        let items = serialise(&message).expect("JSON").unwrap_or_default();
        String::from_utf8(items).expect("UTF-8")
    }

    fn assistant(blocks: &[&str]) -> String {
        let raw = |json: &&str| RawValue::from_string((*json).to_owned()).expect("JSON");
        text(Message::Assistant(blocks.iter().map(raw).collect()))
    }

    /// A reasoning item with encrypted content. [`REASONING`] is the block in which the conversation stores it.
    const ITEM: &str = r#"{"id":"rs_1", "type":"reasoning","encrypted_content":"e\u00e9","summary":[ ]}"#;
    const REASONING: &str = r#"{"type":"reasoning","item":{"id":"rs_1", "type":"reasoning","encrypted_content":"e\u00e9","summary":[ ]}}"#;

    #[test]
    fn r4_r5_results_stand_before_text_and_none_is_empty() {
        let result = |id: &str, content: &str, is_error| UserBlock::ToolResult {
            tool_use: id.into(),
            content: content.to_owned(),
            is_error,
            images: vec![],
        };
        let blocks =
            vec![UserBlock::Text("and?".to_owned()), result("a", "ok", false), result("b", "", true)];
        insta::assert_snapshot!(text(Message::User(blocks)), @r#"{"type":"function_call_output","call_id":"a","output":"ok"},{"type":"function_call_output","call_id":"b","output":"error: (no output)"},{"type":"message","role":"user","content":[{"type":"input_text","text":"and?"}]}"#);
        assert_eq!(text(Message::User(vec![UserBlock::Text(String::new())])), "");
    }

    #[test]
    fn r10_pictures_are_data_urls_and_those_of_results_stand_in_them() {
        let image =
            picture::read(&include_bytes!("../../../../../fixtures/images/lossless.webp")[..]).expect("one");
        let picture = format!(
            r#"{{"type":"input_image","detail":"auto","image_url":"data:image/webp;base64,{}"}}"#,
            image.base64()
        );
        let seen = UserBlock::ToolResult {
            tool_use: "a".into(),
            content: "a picture".to_owned(),
            is_error: false,
            images: vec![image.clone()],
        };
        let blocks = vec![UserBlock::Image(image), UserBlock::Text("this?".to_owned()), seen];
        let expected = format!(
            concat!(
                r#"{{"type":"function_call_output","call_id":"a","output":[{{"type":"input_text","text":"a picture"}},{0}]}},"#,
                r#"{{"type":"message","role":"user","content":[{0},{{"type":"input_text","text":"this?"}}]}}"#
            ),
            picture
        );
        assert_eq!(text(Message::User(blocks)), expected);
    }

    #[test]
    fn r6_what_came_goes_back_byte_for_byte() {
        let call = r#"{"type":"tool_use","id":"c","name":"n","input":{},"item":{"type":"function_call","call_id":"c","name":"n","arguments":"{ }"}}"#;
        let expected =
            format!(r#"{ITEM},{{"type":"function_call","call_id":"c","name":"n","arguments":"{{ }}"}}"#);
        assert_eq!(assistant(&[REASONING, call]), expected);
    }

    #[test]
    fn what_another_api_sent_is_told_in_other_words() {
        let blocks = [
            r#"{"type":"thinking","thinking":"hm","signature":"s"}"#,
            r#"{"type":"text","text":"So."}"#,
            r#"{"type":"text","text":""}"#,
            r#"{"type":"tool_use","id":"t","name":"n","input":{"a": "b"}}"#,
        ];
        insta::assert_snapshot!(assistant(&blocks), @r#"{"type":"message","role":"assistant","content":"So."},{"type":"function_call","call_id":"t","name":"n","arguments":"{\"a\": \"b\"}"}"#);
    }

    #[test]
    fn reasoning_goes_back_only_before_what_it_led_to() {
        let message = r#"{"type":"text","text":"x","item":{"type":"message"}}"#;
        assert_eq!(assistant(&[REASONING]), "");
        assert_eq!(assistant(&[message, REASONING]), r#"{"type":"message"}"#);
        assert_eq!(assistant(&[REASONING, message]), format!(r#"{ITEM},{{"type":"message"}}"#));
        // The order in which such a gateway sends items is kept.
        let behind = r#"{"type":"reasoning","item":{"format":"google-gemini-v1","encrypted_content":"e"}}"#;
        assert!(assistant(&[message, behind]).ends_with(r#","encrypted_content":"e"}"#));
    }

    #[test]
    fn reasoning_that_the_server_alone_could_look_up_does_not_go_back() {
        let message = r#"{"type":"text","text":"x","item":{"type":"message"}}"#;
        for (item, sent) in [
            (r#"{"id":"rs_1","summary":[]}"#, false),
            (r#"{"id":"rs_1","encrypted_content":"","content":[]}"#, false),
            (r#"{"id":"rs_1","encrypted_content":null,"content":null}"#, false),
            (r#"{"id":"rs_1","content":[{"type":"reasoning_text","text":"hm"}]}"#, true),
            (r#"{"id":"rs_1","content":7}"#, false),
        ] {
            let items = assistant(&[&format!(r#"{{"type":"reasoning","item":{item}}}"#), message]);
            assert_eq!(items.contains("rs_1"), sent, "{item}");
        }
    }
}
