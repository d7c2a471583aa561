//! Finds the part of a conversation that an API rejects, so that the conversation can continue without that part.

use bytes::Bytes;
use protocol::event::LeftOut;
use serde_json::value::RawValue;

use super::ProviderError;
use super::messages::MessageText;

/// Phrases in errors by which an API rejects thinking in the conversation, whatever the request's options are.
const THINKING: [&str; 17] = [
    "`signature` in `thinking`",
    "signature in thinking",
    "invalid signature",
    "signature verification failed",
    "thinking.signature",
    "`thinking` block",
    "thinking block",
    "`redacted_thinking` block",
    "cannot be `thinking`",
    "encrypted content",
    "encrypted_content",
    "of type 'reasoning'",
    "reasoning_content",
    "reasoning_details",
    "thought signature",
    "thought_signature",
    "items are not persisted",
];

/// Phrases in errors about missing thinking. Leaving out more thinking would not fix such an error.
const MISSING: [&str; 4] =
    ["is missing", "missing `reasoning_content`", "missing reasoning_content", "must be passed back"];

/// Fields of a request that contain its messages, as paths in errors name them.
const MEMBERS: [&str; 2] = ["messages", "input"];

/// Texts between a field of [`MEMBERS`] and an index, in paths of the vendors, JSON Pointer and Python's validators.
const SEPARATORS: [&str; 8] = [".", "[", ".[", "/", "', ", "\",", "\", ", " -> "];

/// The messages of a request as JSON, to find the message that an error names.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentMessages {
    lead: usize,
    texts: Vec<(Bytes, usize)>,
}

impl SentMessages {
    pub(crate) fn of(lead: usize, texts: &[MessageText]) -> Self {
        Self { lead, texts: texts.iter().map(|text| (text.json.clone(), text.source)).collect() }
    }

    pub(crate) fn blamed(&self, error: ProviderError) -> ProviderError {
        let is_refusal = matches!(error.status, Some(400 | 422)) && !error.is_context_overflow();
        let blames = if is_refusal { self.blames(&error.message) } else { None };
        ProviderError { blames, ..error }
    }

    fn blames(&self, message: &str) -> Option<LeftOut> {
        if self.texts.is_empty() {
            return None;
        }
        let words = message.to_lowercase();
        let is_missing = MISSING.iter().any(|part| words.contains(part));
        if !is_missing && THINKING.iter().any(|part| words.contains(part)) {
            return Some(LeftOut::Thinking);
        }
        let source = self.source(index(message)?)?;
        Some(LeftOut::Message(u32::try_from(source).ok()?))
    }

    /// Returns the index in the conversation for a message's index in the request; `None` if no message has that index.
    /// The two differ, because one message of the conversation may become several in the request.
    fn source(&self, index: usize) -> Option<usize> {
        let mut before = self.lead;
        self.texts.iter().find_map(|(json, source)| {
            before += count(json);
            (index >= self.lead && index < before).then_some(*source)
        })
    }
}

pub(super) fn names_message(message: &str) -> bool {
    index(message).is_some()
}

fn count(json: &[u8]) -> usize {
    let list = [b"[", json, b"]"].concat();
    serde_json::from_slice::<Vec<&RawValue>>(&list).map_or(1, |objects| objects.len())
}

fn index(message: &str) -> Option<usize> {
    MEMBERS.iter().find_map(|member| {
        message.match_indices(member).find_map(|(at, _)| {
            let (before, rest) = (&message[..at], &message[at + member.len()..]);
            SEPARATORS.iter().find_map(|separator| {
                let found = number(rest.strip_prefix(separator)?)?;
                (*separator != "/" || may_begin_pointer(before)).then_some(found)
            })
        })
    })
}

/// True if `before` ends with the beginning of a JSON Pointer, as in `/messages/0`, `#/messages/0`, `body/messages/0`.
/// The address of an endpoint, such as `/v1/messages/3`, names no part of a request.
fn may_begin_pointer(before: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || "\"'`(<=,".contains(c);
    let word = before.rsplit(is_end).next().unwrap_or_default();
    let is_version = |name: &str| {
        name.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match word.split_once('/') {
        None => word.is_empty(),
        Some((first, rest)) => rest.is_empty() && !first.contains(['.', ':']) && !is_version(first),
    }
}

fn number(text: &str) -> Option<usize> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(lead: usize) -> SentMessages {
        let texts = [("{\"a\":1}", 0), ("{},{},{}", 1), ("{}", 4)];
        let texts = texts.into_iter().map(|(json, source)| (Bytes::from_static(json.as_bytes()), source));
        SentMessages { lead, texts: texts.collect() }
    }

    #[test]
    fn z3_a_refusal_names_thinking_a_message_or_nothing_of_the_conversation() {
        let message = |index| Some(LeftOut::Message(index));
        let thinking = Some(LeftOut::Thinking);
        for (words, expected) in [
            ("messages.1.content.0: Invalid `signature` in `thinking` block", thinking),
            ("messages.1.content.0.thinking.signature: Field required", thinking),
            (
                "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
                thinking,
            ),
            ("messages.1: The final block in an assistant message cannot be `thinking`.", thinking),
            (
                "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted",
                thinking,
            ),
            ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", thinking),
            ("Unknown parameter: 'messages[2].reasoning_content'.", thinking),
            (
                "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content organization_id did not match the target organization.",
                thinking,
            ),
            (
                "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
                thinking,
            ),
            ("Corrupted thought signature.", thinking),
            ("Function call is missing a thought_signature in functionCall parts.", None),
            (
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
                None,
            ),
            ("Missing `reasoning_content` field in the assistant message at message index 2.", None),
            ("The `reasoning_content` in the thinking mode must be passed back to the API.", None),
            ("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", message(0)),
            ("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", message(1)),
            ("messages.9: no such message", None),
            (
                "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'messages', 1, 'role'), 'msg': \"Input should be 'user'\"}",
                message(1),
            ),
            (
                "Invalid value for 'content': expected a string, got null. param: messages.[1].content",
                message(1),
            ),
            ("body -> messages -> 4 -> content: str type expected", message(4)),
            (r#"{"loc":["body","messages",4,"content"],"msg":"Field required"}"#, message(4)),
            ("body/messages/1/content must be string", message(1)),
            ("must match schema (at '/messages/4/role')", message(4)),
            ("unknown model; see https://docs.example/v1/messages/4", None),
            ("POST /v1/messages/1 is not allowed", None),
            ("no such page: v1/messages/1", None),
            ("see api.example.com/messages/4", None),
            ("#/messages/0/content: expected maxLength: 2048, actual: 2459", message(0)),
            ("$.messages[1].content: is not of type 'string'", message(1)),
            ("The content field in the Message object at messages.4 is empty.", message(4)),
            (
                "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 1, 'assistant', 'reasoning_content'), 'msg': 'Extra inputs are not permitted'}]",
                thinking,
            ),
            ("at most 100 messages, 1 system prompt", None),
            ("input must have less than 4 items", None),
            ("too many input tokens - 4 seconds until the next", None),
            ("messages2 is unknown", None),
            ("Invalid value: 'x'. Supported values are: 'y'. [messages[3].content]", message(1)),
            ("Invalid 'input[4].content': too long", message(4)),
            ("`temperature` may only be set to 1 when thinking is enabled", None),
            ("thinking.budget_tokens: Input should be greater than or equal to 1024", None),
            ("max_tokens: 99999 > 8192", None),
            ("tools.0.custom.input_schema.type: Field required", None),
            ("messages: at least one message is required", None),
        ] {
            assert_eq!(sent(0).blames(words), expected, "{words}");
        }
        assert_eq!(sent(1).blames("messages[0].content: too long"), None);
        assert_eq!(sent(1).blames("messages[1].content: too long"), message(0));
        assert_eq!(SentMessages::default().blames("messages.0: bad thinking block"), None);
    }

    #[test]
    fn z3_only_a_refusal_of_the_request_names_a_part() {
        let words = "messages.0.content.1: no image";
        for (status, words, expected) in [
            (400, words, true),
            (422, words, true),
            (500, words, false),
            (429, words, false),
            (400, "messages.0: prompt is too long: 9 tokens > 8 maximum", false),
        ] {
            let error = ProviderError { status: Some(status), ..ProviderError::new("x", words) };
            assert_eq!(sent(0).blamed(error).blames.is_some(), expected, "{status} {words}");
        }
    }
}
