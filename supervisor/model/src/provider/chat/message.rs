//! Converts messages to the form of the chat completions API. Each tool result becomes a message of its own.

use std::borrow::Cow;

use ipc::image::Image;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::back::ReasoningBack;
use crate::provider::{Message, UserBlock, messages};

/// Serialises a message; `None` if it is empty. A model's message has its reasoning only if it has tool calls.
pub(super) fn serialise(message: &Message) -> Result<Option<Vec<u8>>, serde_json::Error> {
    serialise_as(message, ReasoningBack::WithCalls)
}

pub(super) fn without_reasoning(message: &Message) -> Result<Option<Vec<u8>>, serde_json::Error> {
    serialise_as(message, ReasoningBack::Never)
}

/// Serialises a message; `None` if it is empty. Each message of the model has its reasoning.
pub(super) fn with_all_reasoning(message: &Message) -> Result<Option<Vec<u8>>, serde_json::Error> {
    serialise_as(message, ReasoningBack::Everywhere)
}

fn serialise_as(message: &Message, back: ReasoningBack) -> Result<Option<Vec<u8>>, serde_json::Error> {
    match message {
        Message::User(blocks) => of_user(blocks),
        Message::Assistant(blocks) => of_assistant(blocks, back),
    }
}

/// Serialises a user's message; `None` if it is empty. Each tool result becomes a message of its own, before the text.
fn of_user(blocks: &[UserBlock]) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let mut json = Vec::new();
    let (mut seen, mut said) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            UserBlock::ToolResult { tool_use, content, is_error, images } => {
                let content = messages::told(content, *is_error);
                push(&mut json, &ToolMessage { role: "tool", tool_call_id: tool_use.as_str(), content })?;
                // A result is text alone, so its pictures are in the user's message after it.
                seen.extend(images.iter().map(picture));
            }
            UserBlock::Image(image) => said.push(picture(image)),
            UserBlock::Text(text) if text.is_empty() => {}
            UserBlock::Text(text) => said.push(ChatPart::Text { text }),
        }
    }
    seen.append(&mut said);
    match &seen[..] {
        [] => {}
        // Text alone is a plain string, since some servers accept nothing else.
        [ChatPart::Text { text }] => push(&mut json, &UserMessage { role: "user", content: text })?,
        parts => push(&mut json, &UserMessage { role: "user", content: parts })?,
    }
    Ok((!json.is_empty()).then_some(json))
}

fn picture(image: &Image) -> ChatPart<'_> {
    ChatPart::ImageUrl { image_url: Url { url: messages::data_url(image) } }
}

/// Serialises a model's message; `None` if it has neither text nor calls.
fn of_assistant(blocks: &[Box<RawValue>], back: ReasoningBack) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let mut message = AssistantMessage::default();
    let mut reasoning = Reasoning::default();
    for block in blocks {
        // Blocks of another API may have fields of the same name with other types.
        let Ok(block) = serde_json::from_str::<ChatBlock<'_>>(block.get()) else { continue };
        match block.kind.as_ref() {
            "text" => message.content.get_or_insert_default().push_str(&block.text),
            "thinking" => reasoning.add(&block),
            "reasoning_details" => message.reasoning_details = block.reasoning_details,
            "tool_use" => message.tool_calls.push(call(&block)?),
            _ => {}
        }
    }
    if message.content.as_ref().is_none_or(String::is_empty) {
        message.content = None;
    }
    if message.content.is_none() && message.tool_calls.is_empty() {
        return Ok(None);
    }
    match back {
        // Most servers need reasoning while tool calls go on. After the turn they ignore it, or it costs tokens.
        // `reasoning_details` contains it, too.
        ReasoningBack::WithCalls => {
            if !message.tool_calls.is_empty() && message.reasoning_details.is_none() {
                (message.reasoning_content, message.reasoning) =
                    (reasoning.reasoning_content, reasoning.reasoning);
            }
        }
        ReasoningBack::Everywhere => message.reasoning_content = Some(reasoning.any()),
        ReasoningBack::Never => {}
    }
    serde_json::to_vec(&message).map(Some)
}

fn call<'a>(block: &ChatBlock<'a>) -> Result<ChatCall<'a>, serde_json::Error> {
    let arguments = match (block.arguments, block.input) {
        (Some(exact), _) => exact.to_owned(),
        (None, input) => serde_json::value::to_raw_value(input.map_or("{}", RawValue::get))?,
    };
    Ok(ChatCall {
        id: block.id.clone(),
        r#type: "function",
        function: CalledFunction { name: block.name.clone(), arguments },
        extra_content: block.extra_content,
    })
}

fn push(json: &mut Vec<u8>, message: &impl Serialize) -> Result<(), serde_json::Error> {
    if !json.is_empty() {
        json.push(b',');
    }
    serde_json::to_writer(json, message)
}

#[derive(Deserialize)]
struct ChatBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    thinking: Cow<'a, str>,
    #[serde(borrow, default)]
    field: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
}

/// Reasoning of a message, by the name of the field in which it arrived. Reasoning from another API is not sent.
#[derive(Default)]
struct Reasoning {
    reasoning_content: Option<String>,
    reasoning: Option<String>,
}

impl Reasoning {
    /// Returns the reasoning of either field, or a blank without any, because servers treat an empty text as missing.
    fn any(self) -> String {
        let any = self.reasoning_content.or(self.reasoning);
        any.filter(|text| !text.is_empty()).unwrap_or_else(|| " ".to_owned())
    }

    fn add(&mut self, block: &ChatBlock<'_>) {
        let field = match block.field.as_ref() {
            "reasoning_content" => &mut self.reasoning_content,
            "reasoning" => &mut self.reasoning,
            _ => return,
        };
        field.get_or_insert_default().push_str(&block.thinking);
    }
}

#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
struct UserMessage<T> {
    role: &'static str,
    content: T,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Url },
}

#[derive(Serialize)]
struct Url {
    url: String,
}

#[derive(Serialize)]
#[serde(tag = "role", rename = "assistant")]
#[derive(Default)]
struct AssistantMessage<'a> {
    /// Text; null if there are only calls. The field is never left out, since some servers require it.
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
}

#[derive(Serialize)]
struct ChatCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: Box<RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: Message) -> Option<String> {
        serialise(&message).expect("JSON").map(|text| String::from_utf8(text).expect("UTF-8"))
    }

    fn assistant(blocks: &[&str]) -> Option<String> {
        let raw = |json: &&str| RawValue::from_string((*json).to_owned()).expect("JSON");
        text(Message::Assistant(blocks.iter().map(raw).collect()))
    }

    fn result(id: &str, content: &str, is_error: bool) -> UserBlock {
        UserBlock::ToolResult { tool_use: id.into(), content: content.to_owned(), is_error, images: vec![] }
    }

    #[test]
    fn r4_r5_results_are_messages_of_their_own_before_what_the_user_says() {
        let say = |text: &str| UserBlock::Text(text.to_owned());
        let blocks = vec![say("and"), result("a", "ok", false), say("now?"), result("b", "", true)];
        assert_eq!(
            text(Message::User(blocks)).as_deref(),
            Some(concat!(
                r#"{"role":"tool","tool_call_id":"a","content":"ok"},"#,
                r#"{"role":"tool","tool_call_id":"b","content":"error: (no output)"},"#,
                r#"{"role":"user","content":[{"type":"text","text":"and"},{"type":"text","text":"now?"}]}"#
            ))
        );
        assert_eq!(text(Message::User(vec![say("a")])).as_deref(), Some(r#"{"role":"user","content":"a"}"#));
        assert_eq!(text(Message::User(vec![say("")])), None);
    }

    #[test]
    fn r10_pictures_are_data_urls_and_those_of_results_stand_behind_them() {
        let image =
            picture::read(&include_bytes!("../../../../../fixtures/images/lossless.webp")[..]).expect("one");
        let data = image.base64().to_string();
        let seen = UserBlock::ToolResult {
            tool_use: "a".into(),
            content: image.to_string(),
            is_error: false,
            images: vec![image.clone()],
        };
        let blocks = vec![UserBlock::Image(image), UserBlock::Text("this?".to_owned()), seen];
        let picture =
            format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/webp;base64,{data}"}}}}"#);
        let expected = format!(
            concat!(
                r#"{{"role":"tool","tool_call_id":"a","content":"[image webp 48×32, 118 bytes]"}},"#,
                r#"{{"role":"user","content":[{0},{0},{{"type":"text","text":"this?"}}]}}"#
            ),
            picture
        );
        assert_eq!(text(Message::User(blocks)).as_deref(), Some(&*expected));
    }

    #[test]
    fn arguments_go_back_as_the_text_that_came() {
        assert_eq!(
            assistant(&[
                r#"{"type":"text","text":"a "}"#,
                r#"{"type":"text","text":"b"}"#,
                r#"{"type":"tool_use","id":"c1","name":"n","input":{"x": 1.0}}"#,
                r#"{"type":"tool_use","id":"c2","name":"n","input":{ },"arguments":"{\n}","extra_content":{"s": 1}}"#,
            ])
            .as_deref(),
            Some(concat!(
                r#"{"role":"assistant","content":"a b","tool_calls":["#,
                r#"{"id":"c1","type":"function","function":{"name":"n","arguments":"{\"x\": 1.0}"}},"#,
                r#"{"id":"c2","type":"function","function":{"name":"n","arguments":"{\n}"},"extra_content":{"s": 1}}]}"#
            ))
        );
    }

    #[test]
    fn r6_reasoning_goes_back_in_the_member_that_brought_it_and_only_with_calls() {
        const CALL: &str = r#"{"type":"tool_use","id":"c","name":"n","input":{}}"#;
        const CALLS: &str =
            r#""tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]"#;
        let of = |field: &str, text: &str| {
            format!(r#"{{"type":"thinking","thinking":"{text}","field":"{field}"}}"#)
        };
        let ours = of("reasoning_content", "a");
        let expected =
            |member: &str| Some(format!(r#"{{"role":"assistant","content":null,{member}{CALLS}}}"#));
        assert_eq!(assistant(&[&ours, &ours, CALL]), expected(r#""reasoning_content":"aa","#));
        assert_eq!(assistant(&[&of("reasoning", "b"), CALL]), expected(r#""reasoning":"b","#));
        // Thinking of another API, and reasoning from a field that no server has.
        let signed = r#"{"type":"thinking","thinking":"a","signature":"s"}"#;
        assert_eq!(assistant(&[signed, &of("role", "user"), CALL]), expected(""));
        let details = r#"{"type":"reasoning_details","reasoning_details":[{"data" : "\u00e9"}]}"#;
        let verbatim = expected(r#""reasoning_details":[{"data" : "\u00e9"}],"#);
        assert_eq!(assistant(&[&ours, details, CALL]), verbatim);
        let said = assistant(&[&ours, r#"{"type":"text","text":"done"}"#]);
        assert_eq!(said.as_deref(), Some(r#"{"role":"assistant","content":"done"}"#));
        assert_eq!(assistant(&[&ours, r#"{"type":"text","text":""}"#]), None);
    }
}
