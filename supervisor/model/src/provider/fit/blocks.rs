//! Converts the blocks of a message into blocks that a provider accepts.

use std::borrow::Cow;
use std::sync::Arc;

use ipc::id::ToolUseId;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::ids::NamedCall;
use crate::provider::members::ReplyMembers;
use crate::provider::{Message, ProviderKind, UserBlock, arguments, tool_name};

const LONGEST_NAME: usize = 64;

/// The text in place of a tool call's result that the log does not have.
const NO_RESULT: &str = "interrupted: the call has no result";

#[derive(Clone, Debug)]
pub(super) enum Fit {
    AsItIs,
    Changed(Arc<Message>),
    /// The message is left out, because the provider accepts none of its content.
    Nothing,
}

/// The fields of a block on which its conversion depends.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FitMembers<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
}

impl<'a> FitMembers<'a> {
    fn of(block: &'a RawValue) -> Self {
        // A block that does not parse is sent unchanged.
        serde_json::from_str(block.get()).unwrap_or_default()
    }

    fn is_call(&self) -> bool {
        self.r#type == "tool_use"
    }

    /// True for a text without visible characters. APIs send such texts, but reject them in requests.
    fn is_blank(&self) -> bool {
        self.r#type == "text" && string(self.text).is_none_or(|text| is_blank(&text))
    }

    /// True for a block that the Messages API rejects: a block of another API, or thinking without a signature.
    fn is_foreign_to_messages(&self) -> bool {
        matches!(&*self.r#type, "reasoning" | "reasoning_details" | "output_item")
            || self.r#type == "thinking" && self.signature.is_none()
    }

    fn is_thinking(&self) -> bool {
        matches!(&*self.r#type, "thinking" | "redacted_thinking")
    }
}

/// True for a text of white space and of U+001C to U+001F. The vendors' `str.strip` in Python removes these, too.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}'))
}

fn string(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw?.get()).ok()
}

/// Converts a message of the model. `named` has the message's tool calls with their new ids, in order.
pub(super) fn of_assistant(blocks: &[Box<RawValue>], named: &[NamedCall], kind: ProviderKind) -> Fit {
    let mut named = named.iter();
    let mut kept: Vec<Cow<'_, RawValue>> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let members = FitMembers::of(block);
        if members.is_blank() {
            // Reasoning before the empty text is left out with it.
            while kind == ProviderKind::Responses && kept.pop_if(|last| is_reasoning(last)).is_some() {}
        } else if kind == ProviderKind::Anthropic && members.is_foreign_to_messages() {
        } else if members.is_call() {
            let wire = named.next().map(|call| call.wire.as_str()).unwrap_or_default();
            kept.push(call(block, &members, wire).map_or(Cow::Borrowed(&**block), Cow::Owned));
        } else {
            kept.push(Cow::Borrowed(block));
        }
    }
    // The API's rule: "The final block in an assistant message cannot be `thinking`."
    while kind == ProviderKind::Anthropic && kept.pop_if(|last| FitMembers::of(last).is_thinking()).is_some()
    {
    }
    if !kept.iter().any(|block| says_something(block, kind)) {
        return Fit::Nothing;
    }
    if kept.len() == blocks.len() && kept.iter().all(|block| matches!(block, Cow::Borrowed(_))) {
        return Fit::AsItIs;
    }
    let kept = kept.into_iter().map(Cow::into_owned).collect();
    Fit::Changed(Arc::new(Message::Assistant(kept)))
}

/// True if a block can be a message without any other block. In chat completions, thinking cannot.
fn says_something(block: &RawValue, kind: ProviderKind) -> bool {
    kind != ProviderKind::OpenAi || matches!(&*FitMembers::of(block).r#type, "text" | "tool_use")
}

fn is_reasoning(block: &RawValue) -> bool {
    FitMembers::of(block).r#type == "reasoning"
}

/// Returns a call with the id `wire`, and a name and arguments that all APIs accept; `None` if it has these already.
fn call(block: &RawValue, members: &FitMembers<'_>, wire: &str) -> Option<Box<RawValue>> {
    let (id, name) = (string(members.id).unwrap_or_default(), string(members.name).unwrap_or_default());
    let fitting = fitting_name(&name);
    let has_input = members.input.is_some_and(|input| input.get().starts_with('{'));
    if id == wire && fitting == name && has_input {
        return None;
    }
    let mut block: ReplyMembers = serde_json::from_str(block.get()).ok()?;
    block.set("id", to_raw_value(wire).ok()?);
    block.set("name", to_raw_value(&fitting).ok()?);
    if !has_input {
        let shown = members.input.map_or(String::from("{}"), |input| {
            arguments::invalid(input.get()).unwrap_or_else(|_| String::from("{}"))
        });
        block.set("input", RawValue::from_string(shown).ok()?);
    }
    if let Some(item) = members.item {
        let mut item: ReplyMembers = serde_json::from_str(item.get()).ok()?;
        item.set("call_id", to_raw_value(wire).ok()?);
        item.set("name", to_raw_value(&fitting).ok()?);
        block.set("item", RawValue::from_string(item.to_json().ok()?).ok()?);
    }
    RawValue::from_string(block.to_json().ok()?).ok()
}

/// Returns a tool's name in a form that every API accepts, shortened to the maximum length.
fn fitting_name(name: &str) -> String {
    let name = tool_name::harmless(name).unwrap_or(Cow::Borrowed("unknown"));
    name.chars().take(LONGEST_NAME).collect()
}

/// Converts a message of the user. Each tool call in `open` gets one result; results of other calls are left out.
pub(super) fn of_user(blocks: &[UserBlock], open: &[NamedCall]) -> Fit {
    let mut open: Vec<_> = open.iter().collect();
    let (mut kept, mut behind, mut changed) = (Vec::with_capacity(blocks.len()), Vec::new(), false);
    for block in blocks {
        let fitted = match block {
            UserBlock::Text(text) if is_blank(text) => None,
            UserBlock::ToolResult { tool_use, .. } => {
                let at = open.iter().position(|call| call.id == tool_use.0);
                at.map(|at| result(block, &open.remove(at).wire, &mut behind))
            }
            UserBlock::Text(_) | UserBlock::Image(_) => Some(Cow::Borrowed(block)),
        };
        changed |= !matches!(fitted, Some(Cow::Borrowed(_)));
        kept.extend(fitted);
    }
    if kept.is_empty() && open.is_empty() {
        return Fit::Nothing;
    }
    if !changed && open.is_empty() {
        return Fit::AsItIs;
    }
    let missing = open.into_iter().map(missing_result);
    let kept = kept.into_iter().map(Cow::into_owned).chain(missing).chain(behind).collect();
    Fit::Changed(Arc::new(Message::User(kept)))
}

/// Converts a tool's result. The Messages API rejects pictures in the result of a failed call: these move to `behind`.
fn result<'a>(block: &'a UserBlock, wire: &str, behind: &mut Vec<UserBlock>) -> Cow<'a, UserBlock> {
    let UserBlock::ToolResult { tool_use, content, is_error, images } = block else {
        return Cow::Borrowed(block);
    };
    let is_blank = !content.is_empty() && is_blank(content);
    let moves = *is_error && !images.is_empty();
    if tool_use.0 == wire && !is_blank && !moves {
        return Cow::Borrowed(block);
    }
    let images = if moves {
        behind.extend(images.iter().cloned().map(UserBlock::Image));
        Vec::new()
    } else {
        images.clone()
    };
    let content = if is_blank { String::new() } else { content.clone() };
    Cow::Owned(UserBlock::ToolResult {
        tool_use: ToolUseId(wire.to_owned()),
        content,
        is_error: *is_error,
        images,
    })
}

pub(super) fn missing_result(call: &NamedCall) -> UserBlock {
    UserBlock::ToolResult {
        tool_use: ToolUseId(call.wire.clone()),
        content: NO_RESULT.to_owned(),
        is_error: true,
        images: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z1_a_text_that_a_vendor_takes_for_blank_is_left_out() {
        let block = |text: &str| {
            let block = serde_json::json!({"type": "text", "text": text});
            vec![RawValue::from_string(block.to_string()).unwrap()]
        };
        for blank in [
            "",
            "\t",
            "\r\n",
            "\u{a0}",
            "\u{3000}\n",
            "\u{2028}\u{2003}",
            "\u{85}",
            "\u{1c} \u{1f}",
            "\u{b}\u{c}",
        ] {
            for kind in [ProviderKind::Anthropic, ProviderKind::OpenAi, ProviderKind::Responses] {
                assert!(matches!(of_assistant(&block(blank), &[], kind), Fit::Nothing), "{blank:?}");
            }
            let user = [UserBlock::Text(blank.to_owned())];
            assert!(matches!(of_user(&user, &[]), Fit::Nothing), "{blank:?}");
        }
        for text in ["0", ".", "\u{200b}", "\u{ad}", "\u{1f600}", " a "] {
            let kind = ProviderKind::Anthropic;
            assert!(matches!(of_assistant(&block(text), &[], kind), Fit::AsItIs), "{text:?}");
        }
    }
}
