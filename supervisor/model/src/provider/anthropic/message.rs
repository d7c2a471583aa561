use ipc::image::{Image, MediaType};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::messages::MessageText;
use crate::provider::{Message, UserBlock};

/// Appends a message to the body of a request. `marked` adds a cache marker to the message's last block.
pub(super) fn write(text: &MessageText, marked: bool, body: &mut Vec<u8>) {
    // `…}]}`: the ends of the last block, of the content and of the message.
    const TAIL: usize = 3;
    let (head, tail) = text.json.split_at(text.json.len() - TAIL);
    body.extend_from_slice(head);
    if marked {
        body.push(b',');
        body.extend_from_slice(super::request::CACHE_MARKER.as_bytes());
    }
    body.extend_from_slice(tail);
}

pub(super) fn serialise(message: &Message) -> Result<Option<Vec<u8>>, serde_json::Error> {
    #[derive(Serialize)]
    struct Wire<T> {
        role: &'static str,
        content: Vec<T>,
    }
    match message {
        Message::User(blocks) => {
            // Results come before text.
            let (results, others): (Vec<_>, Vec<_>) = blocks
                .iter()
                .filter_map(user_block)
                .partition(|block| matches!(block, AnthropicBlock::ToolResult { .. }));
            let content: Vec<_> = results.into_iter().chain(others).collect();
            non_empty(content.is_empty(), &Wire { role: "user", content })
        }
        Message::Assistant(blocks) => {
            let content: Vec<_> = blocks.iter().filter(|block| !is_empty_text(block)).collect();
            non_empty(content.is_empty(), &Wire { role: "assistant", content })
        }
    }
}

fn non_empty(is_empty: bool, message: &impl Serialize) -> Result<Option<Vec<u8>>, serde_json::Error> {
    if is_empty { Ok(None) } else { serde_json::to_vec(message).map(Some) }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicBlock<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: AnthropicContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Content of a tool's result: text alone as a string, or text and pictures as a list of blocks.
#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicContent<'a> {
    Text(&'a str),
    Blocks(Vec<AnthropicBlock<'a>>),
}

/// Data of a picture. An [`Image`] always has the media type of its bytes.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 { media_type: MediaType, data: String },
}

fn picture(image: &Image) -> AnthropicBlock<'_> {
    let source = Source::Base64 { media_type: image.media_type(), data: image.base64().to_string() };
    AnthropicBlock::Image { source }
}

/// Returns a block for a request; `None` for an empty text. A tool's empty result gets a text.
fn user_block(block: &UserBlock) -> Option<AnthropicBlock<'_>> {
    match block {
        UserBlock::Text(text) if text.is_empty() => None,
        UserBlock::Text(text) => Some(AnthropicBlock::Text { text }),
        UserBlock::Image(image) => Some(picture(image)),
        UserBlock::ToolResult { tool_use, content, is_error, images } => {
            let text = if content.is_empty() { "(no output)" } else { content };
            let content = match &images[..] {
                [] => AnthropicContent::Text(text),
                images => AnthropicContent::Blocks(
                    std::iter::once(AnthropicBlock::Text { text })
                        .chain(images.iter().map(picture))
                        .collect(),
                ),
            };
            Some(AnthropicBlock::ToolResult { tool_use_id: tool_use.as_str(), content, is_error: *is_error })
        }
    }
}

/// True for an empty text block: models may send one, but the API rejects it in requests.
fn is_empty_text(block: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct MessageView {
        r#type: String,
        text: Option<String>,
    }
    // A long block cannot be empty, and is not parsed again.
    block.get().len() < 256
        && serde_json::from_str::<MessageView>(block.get())
            .is_ok_and(|view| view.r#type == "text" && view.text.is_none_or(|text| text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: Message) -> Option<String> {
        serialise(&message).expect("JSON").map(|text| String::from_utf8(text).expect("UTF-8"))
    }

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("JSON")
    }

    #[test]
    fn r4_r5_messages_as_the_api_takes_them() {
        let result = |id: &str, content: &str, is_error| UserBlock::ToolResult {
            tool_use: id.into(),
            content: content.to_owned(),
            is_error,
            images: vec![],
        };
        let message =
            vec![UserBlock::Text("and now?".to_owned()), result("a", "ok", false), result("b", "", true)];
        assert_eq!(
            text(Message::User(message)).as_deref(),
            Some(concat!(
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"},"#,
                r#"{"type":"tool_result","tool_use_id":"b","content":"(no output)","is_error":true},"#,
                r#"{"type":"text","text":"and now?"}]}"#
            ))
        );
        assert_eq!(text(Message::User(vec![UserBlock::Text(String::new())])), None);
    }

    #[test]
    fn r10_pictures_stand_in_their_place_and_those_of_results_within_them() {
        let image =
            picture::read(&include_bytes!("../../../../../fixtures/images/lossless.webp")[..]).expect("one");
        let data = image.base64().to_string();
        let result = UserBlock::ToolResult {
            tool_use: "a".into(),
            content: image.to_string(),
            is_error: false,
            images: vec![image.clone()],
        };
        let message =
            Message::User(vec![UserBlock::Image(image), UserBlock::Text("this?".to_owned()), result]);
        let picture = format!(
            r#"{{"type":"image","source":{{"type":"base64","media_type":"image/webp","data":"{data}"}}}}"#
        );
        let expected = format!(
            concat!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":["#,
                r#"{{"type":"text","text":"[image webp 48×32, 118 bytes]"}},{0}]}},{0},"#,
                r#"{{"type":"text","text":"this?"}}]}}"#
            ),
            picture
        );
        assert_eq!(text(message).as_deref(), Some(&*expected));
    }

    #[test]
    fn a_marker_at_a_picture_stands_within_its_block() {
        let image =
            picture::read(&include_bytes!("../../../../../fixtures/images/shapes.png")[..]).expect("one");
        let json =
            serialise(&Message::User(vec![UserBlock::Image(image)])).expect("JSON").expect("a message");
        let mut body = Vec::new();
        let message = std::sync::Arc::new(Message::User(vec![]));
        let text = MessageText { json: json.into(), of_user: true, message, source: 0 };
        write(&text, true, &mut body);
        let message: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(message["content"][0]["cache_control"]["type"], "ephemeral");
    }

    #[test]
    fn r6_assistant_blocks_go_back_byte_for_byte_and_empty_text_does_not() {
        let thinking = r#"{"type":"thinking", "thinking":"","signature":"\u00e9="}"#;
        let blocks = vec![raw(thinking), raw(r#"{"type":"text","text":""}"#), raw(r#"{"x":1.0}"#)];
        let expected = format!(r#"{{"role":"assistant","content":[{thinking},{{"x":1.0}}]}}"#);
        assert_eq!(text(Message::Assistant(blocks)), Some(expected));
        assert_eq!(text(Message::Assistant(vec![raw(r#"{"type":"text","text":""}"#)])), None);
    }
}
