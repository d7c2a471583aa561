//! Counts the tokens of a reply that is forwarded unchanged. Only lines with the name of a usage field are parsed.

use memchr::memchr2;
use memchr::memmem::Finder;
use protocol::event::TokenUsage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ProviderKind;
use super::{anthropic, chat, responses};

/// Maximum bytes of a line. The last event of the Responses API contains the whole reply.
const MOST: usize = 32 << 20;

pub struct Meter {
    kind: ProviderKind,
    usage_name: Finder<'static>,
    error_name: Finder<'static>,
    /// Beginning of a line that is not complete yet.
    line: Vec<u8>,
    /// True while the rest of a line above the maximum length is skipped.
    skips: bool,
    /// Token counts so far in a reply of the Messages API, which sends them in two events.
    members: Map<String, Value>,
    usage: Option<TokenUsage>,
    is_final: bool,
    has_failed: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Failed<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Failed<'_> {
    fn is_one(&self) -> bool {
        let is_error = self.kind.is_some_and(|kind| kind.get() == "\"error\"");
        is_error || self.error.is_some_and(|error| error.get() != "null")
    }
}

#[derive(Deserialize)]
struct Inner {
    usage: Option<Value>,
}

impl Meter {
    pub fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            usage_name: Finder::new("\"usage\""),
            error_name: Finder::new("\"error\""),
            line: Vec::new(),
            skips: false,
            members: Map::new(),
            usage: None,
            is_final: false,
            has_failed: false,
        }
    }

    pub fn push(&mut self, mut piece: &[u8]) {
        while let Some(end) = memchr2(b'\n', b'\r', piece) {
            let (line, rest) = piece.split_at(end);
            piece = &rest[1..];
            if self.skips {
                self.skips = false;
            } else if self.line.is_empty() {
                self.read(line);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.read(&whole);
                whole.clear();
                self.line = whole;
            }
        }
        if self.skips || self.line.len() + piece.len() > MOST {
            self.skips = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(piece);
        }
    }

    /// Handles the end of a body that arrived completely.
    pub fn finish(&mut self) {
        let rest = std::mem::take(&mut self.line);
        self.read(&rest);
        // In chat completions any token counts may be the last, until the body ends.
        self.is_final |= self.usage.is_some() && self.kind == ProviderKind::OpenAi;
    }

    pub const fn usage(&self) -> Option<TokenUsage> {
        self.usage
    }

    /// True if the server sent an error in place of the reply, or of the rest of the reply.
    pub const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// True if the token counts include the whole reply.
    pub const fn is_final(&self) -> bool {
        self.is_final
    }

    fn read(&mut self, line: &[u8]) {
        let data = line.strip_prefix(b"data:").unwrap_or(line);
        let names_error = self.error_name.find(data).is_some();
        self.has_failed |=
            names_error && serde_json::from_slice::<Failed<'_>>(data).is_ok_and(|of| of.is_one());
        if self.usage_name.find(data).is_none() {
            let is_end = self.kind == ProviderKind::OpenAi && data.trim_ascii() == b"[DONE]";
            self.is_final |= is_end && self.usage.is_some();
            return;
        }
        let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else { return };
        match self.kind {
            ProviderKind::Anthropic => self.of_messages(&event),
            ProviderKind::OpenAi => {
                // Groq's older field for token counts is ignored, since Groq sends the usual one on request.
                self.usage = event.usage.and_then(chat::usage_of).or(self.usage);
            }
            ProviderKind::Responses => {
                let whole = event.usage.and_then(|usage| serde_json::from_str(usage.get()).ok());
                let usage = event.response.and_then(inner).or(whole).filter(Value::is_object);
                if let Some(usage) = usage {
                    self.usage = Some(responses::usage_of(&usage));
                    self.is_final = true;
                }
            }
        }
    }

    /// Adds the token counts of an event of the Messages API: `message_start` has those of the prompt, `message_delta`
    /// those of the reply, and a reply without a stream has both.
    fn of_messages(&mut self, event: &Event<'_>) {
        let kind = event.kind.map_or("", |kind| kind.get().trim_matches('"'));
        let usage = match kind {
            "message_start" => event.message.and_then(inner),
            "message_delta" | "message" => {
                event.usage.and_then(|usage| serde_json::from_str(usage.get()).ok())
            }
            _ => None,
        };
        let Some(Value::Object(usage)) = usage else { return };
        for (name, value) in usage {
            if !value.is_null() || !self.members.contains_key(&name) {
                self.members.insert(name, value);
            }
        }
        self.usage = Some(anthropic::usage_of(&self.members));
        self.is_final |= kind != "message_start";
    }
}

fn inner(raw: &RawValue) -> Option<Value> {
    serde_json::from_str::<Inner>(raw.get()).ok()?.usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Block, Usage, sse};

    fn metered(kind: ProviderKind, body: &str, size: usize) -> Meter {
        let mut meter = Meter::new(kind);
        body.as_bytes().chunks(size).for_each(|piece| meter.push(piece));
        meter
    }

    #[test]
    fn a_stream_is_metered_in_any_pieces_and_is_final_at_its_end_alone() {
        let body =
            sse::message(&[Block::text("\"usage\":{\"output_tokens\":9}")], "end_turn", Usage::default());
        let whole = metered(ProviderKind::Anthropic, &body, usize::MAX);
        assert!(whole.is_final());
        for size in [1, 7, 64] {
            assert_eq!(metered(ProviderKind::Anthropic, &body, size).usage(), whole.usage());
        }
        let start = body.find("content_block_start").expect("a block");
        let begun = metered(ProviderKind::Anthropic, &body[..start], 3);
        assert!(begun.usage().is_some() && !begun.is_final());
    }

    #[test]
    fn each_api_has_its_own_last_word() {
        let chat = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
        assert!(!metered(ProviderKind::OpenAi, chat, 5).is_final());
        let done = metered(ProviderKind::OpenAi, &format!("{chat}data: [DONE]\n\n"), 5);
        assert_eq!((done.usage().expect("a usage").input, done.is_final()), (7, true));
        let mut ended = metered(ProviderKind::OpenAi, chat, 5);
        ended.finish();
        assert!(ended.is_final());
        let responses = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":\
            {\"usage\":{\"input_tokens\":5,\"output_tokens\":3}}}\n\n";
        let done = metered(ProviderKind::Responses, responses, 11);
        assert_eq!((done.usage().expect("a usage").total(), done.is_final()), (8, true));
        let begun = "data: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n";
        assert!(metered(ProviderKind::Responses, begun, 11).usage().is_none());
        for (body, expected) in [
            ("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n", true),
            ("data: {\"error\":{\"message\":\"x\"}}\n", true),
            ("data: {\"choices\":[],\"error\":null}\n", false),
            ("data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"\\\"error\\\":1\"}}\n", false),
        ] {
            assert_eq!(metered(ProviderKind::OpenAi, body, 9).has_failed(), expected, "{body}");
        }
        let mut whole =
            metered(ProviderKind::Anthropic, "{\"type\":\"message\",\"usage\":{\"input_tokens\":1}}", 9);
        whole.finish();
        assert!(whole.is_final());
    }
}
