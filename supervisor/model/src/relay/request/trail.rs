//! Recognises the beginning of a conversation whose tokens the provider has counted before.
//!
//! A request begins like the previous request of its conversation, for whose prompt the count is known. Only the new
//! part is estimated by its bytes. By bytes alone, a long conversation would count four times its tokens.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};

use memchr::memmem;
use serde_json::value::RawValue;

/// Cache markers, which move to the end of a growing conversation. Digests therefore leave them out.
const MARKERS: [&[u8]; 3] = [
    br#","cache_control":{"type":"ephemeral"}"#,
    br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
    br#","cache_control":{"type":"ephemeral","ttl":"5m"}"#,
];

/// Common prefix of all markers.
const BEGINNING: &[u8] = br#","cache_control":"#;

/// Maximum number of prompts whose token counts are remembered for a client.
const REMEMBERED: usize = 64;

/// Digests of a conversation, one for each beginning that ends with a whole message.
#[derive(Clone, Debug, Default)]
pub(in crate::relay) struct Trail {
    /// For each message, digest and length in bytes of everything up to the message's end.
    ends: Vec<(u64, u64)>,
    pictures: u64,
}

/// A client's earlier prompts, with the provider's token counts.
#[derive(Debug, Default)]
pub(in crate::relay) struct CountedPrompts {
    prompts: Mutex<VecDeque<PromptTrail>>,
    /// Random keys of the digests, so that no client can find two prompts with one digest.
    keys: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct PromptTrail {
    digest: u64,
    bytes: u64,
    pictures: u64,
    tokens: u64,
}

impl CountedPrompts {
    /// Returns the digests of a conversation. `before` is the part of the request in front of the messages.
    pub(super) fn trail(&self, before: &[u8], messages: &[&RawValue], pictures: u64) -> Trail {
        let mut hasher = self.keys.build_hasher();
        add(&mut hasher, before);
        let mut bytes = before.len() as u64;
        let end = |message: &&RawValue| {
            let text = message.get().as_bytes();
            add(&mut hasher, text);
            // This separates a message from the next one.
            hasher.write_u8(0);
            bytes += text.len() as u64 + 1;
            (hasher.finish(), bytes)
        };
        Trail { ends: messages.iter().map(end).collect(), pictures }
    }

    /// Returns an upper bound on the tokens of a prompt; `None` if no beginning of the prompt was sent before.
    pub(super) fn bound(&self, trail: &Trail, of_picture: u64) -> Option<u64> {
        let prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |digest| prompts.iter().rev().find(|prompt| prompt.digest == digest);
        let (known, bytes) =
            trail.ends.iter().rev().find_map(|(digest, bytes)| Some((known(*digest)?, *bytes)))?;
        let all = trail.ends.last().map_or(0, |(_, bytes)| *bytes);
        // Additional markers count by their bytes, like all new text.
        let new = all.saturating_sub(bytes) + bytes.saturating_sub(known.bytes);
        let pictures = trail.pictures.saturating_sub(known.pictures);
        Some(known.tokens.saturating_add(new).saturating_add(pictures.saturating_mul(of_picture)))
    }

    pub(in crate::relay) fn learn(&self, trail: &Trail, tokens: u64) {
        let Some((digest, bytes)) = trail.ends.last().copied().filter(|_| tokens > 0) else { return };
        let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        prompts.retain(|prompt| prompt.digest != digest);
        if prompts.len() == REMEMBERED {
            prompts.pop_front();
        }
        prompts.push_back(PromptTrail { digest, bytes, pictures: trail.pictures, tokens });
    }
}

/// Hashes a text without its cache markers. No JSON string can contain a marker, since its quotes would be escaped.
fn add(hasher: &mut impl Hasher, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = memmem::find(rest, BEGINNING) {
        let (plain, marked) = rest.split_at(at);
        hasher.write(plain);
        rest = if let Some(rest) = MARKERS.iter().find_map(|marker| marked.strip_prefix(*marker)) {
            rest
        } else {
            let (beginning, rest) = marked.split_at(BEGINNING.len());
            hasher.write(beginning);
            rest
        };
    }
    hasher.write(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(texts: &[&str]) -> Vec<Box<RawValue>> {
        texts.iter().map(|text| RawValue::from_string((*text).to_owned()).expect("JSON")).collect()
    }

    fn trail(counted: &CountedPrompts, before: &str, messages: &[&str]) -> Trail {
        let messages = raw(messages);
        let messages: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
        counted.trail(before.as_bytes(), &messages, 0)
    }

    #[test]
    fn what_was_counted_stands_for_its_bytes_and_what_is_new_does_not() {
        let counted = CountedPrompts::default();
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1000));
        counted.learn(&trail(&counted, "tools", &["{\"u\":1}", &long]), 300);
        let bound = |before: &str, messages: &[&str]| counted.bound(&trail(&counted, before, messages), 9);
        assert_eq!(bound("tools", &["{\"u\":1}", &long]), Some(300));
        assert_eq!(bound("tools", &["{\"u\":1}", &long, "{\"n\":22}"]), Some(309));
        assert_eq!(bound("other", &["{\"u\":1}", &long]), None);
        assert_eq!(bound("tools", &["{\"u\":2}", &long]), None);
        assert_eq!(bound("tools", &["{\"u\":1}"]), None);
    }

    #[test]
    fn markers_may_move_and_count_where_they_are_new() {
        let counted = CountedPrompts::default();
        let marked = r#"{"t":"a","cache_control":{"type":"ephemeral"}}"#;
        let hour = r#"{"t":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}"#;
        let other = r#"{"t":"a","cache_control":{"type":"ephemeral","ttl":"2h"}}"#;
        counted.learn(&trail(&counted, "", &[marked]), 10);
        assert_eq!(counted.bound(&trail(&counted, "", &[r#"{"t":"a"}"#]), 0), Some(10));
        let more = (hour.len() - marked.len()) as u64;
        assert_eq!(counted.bound(&trail(&counted, "", &[hour]), 0), Some(10 + more));
        assert_eq!(counted.bound(&trail(&counted, "", &[other]), 0), None);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let counted = CountedPrompts::default();
        for number in 0..200 {
            counted.learn(&trail(&counted, "", &[&number.to_string()]), 1);
        }
        assert_eq!(counted.prompts.lock().expect("no panic").len(), REMEMBERED);
        assert_eq!(counted.bound(&trail(&counted, "", &["199"]), 0), Some(1));
        assert_eq!(counted.bound(&trail(&counted, "", &["0"]), 0), None);
    }
}
