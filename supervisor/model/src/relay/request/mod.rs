//! Parses a client's request completely, and serialises it again.
//!
//! [`rule`] defines the language of the allowlists. [`messages`], [`chat`] and [`responses`] are the allowlists, one
//! for each API, with the fields that Bailiwick's own client sends. So no request can make a provider search the web,
//! run code, fetch a URL, keep a conversation or read files.

mod chat;
mod free;
mod messages;
mod responses;
mod rule;
#[cfg(test)]
mod tests;
mod trail;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use protocol::cost::{Prices, Usd};
use protocol::event::TokenUsage;
use serde::Deserialize;
use serde::de::{Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use self::rule::{Member, MemberPath, known, shown};
pub(super) use self::trail::{CountedPrompts, Trail};
use crate::provider::ProviderKind;
use crate::provider::catalogue::Facts;
use crate::provider::chat::{Form, ReplyLimit};

/// Maximum number of fields in an object whose fields have rules.
const MOST_MEMBERS: usize = 64;

/// Estimated tokens of a picture, whatever the size of its file.
const OF_PICTURE: u64 = 6_000;

/// Estimated tokens that a provider adds to a prompt in order to describe the tools.
const ADDED: u64 = 2_000;

/// Parts of the names of models that search the web by themselves.
const WITH_NETWORK: [&str; 6] = ["search", "deep-research", ":online", "sonar", "compound", "browse"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) field: String,
    pub(super) why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

/// Limits on a request, in addition to the rules for its fields.
pub(super) struct RequestBounds<'a> {
    pub(super) facts: &'a (dyn Fn(&str) -> Facts + Send + Sync),
    /// Models that the client may use; if empty, every model with a price.
    pub(super) models: &'a [String],
    pub(super) max_reply: u64,
    /// The variant of chat completions that the provider accepts. Other APIs ignore it.
    pub(super) chat: Form,
}

#[derive(Debug)]
pub(super) struct RelayRequest {
    pub(super) model: String,
    pub(super) body: Bytes,
    pub(super) prices: Prices,
    pub(super) estimate: RelayEstimate,
    /// Digests of the conversation, by which the next request is recognised as its continuation.
    pub(super) trail: Trail,
}

/// An upper bound on the cost of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RelayEstimate {
    /// Maximum tokens of the prompt: the count for a beginning that was sent before, and one for each byte of the rest.
    pub(super) prompt: u64,
    pub(super) output: u64,
    pub(super) cost: Usd,
}

impl RelayEstimate {
    fn of(prompt: u64, output: u64, prices: &Prices) -> Self {
        let none = TokenUsage { output, ..TokenUsage::default() };
        let cost = [
            TokenUsage { input: prompt, ..none },
            TokenUsage { cache_creation: prompt, ..none },
            TokenUsage { cache_creation: prompt, cache_creation_1h: prompt, ..none },
        ]
        .iter()
        .map(|usage| prices.cost(usage))
        .max()
        .unwrap_or_default();
        Self { prompt, output, cost }
    }

    pub(super) const fn tokens(&self) -> u64 {
        self.prompt.saturating_add(self.output)
    }
}

#[derive(Debug)]
pub(super) struct RelayMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RelayMembers<'a> {
    fn of(json: &'a str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| {
            let text = error.to_string();
            if error.is_data() { text.split(" at line ").next().unwrap_or(&text).to_owned() } else { text }
        })
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }
}

impl<'de> Deserialize<'de> for RelayMembers<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = RelayMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RelayMembers<'de>, A::Error> {
        let mut members: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            if members.iter().any(|(known, _)| *known == name) {
                return Err(Error::custom(format_args!("has the member {} twice", shown(&name))));
            }
            if members.len() == MOST_MEMBERS {
                return Err(Error::custom("has too many members"));
            }
            members.push((name, map.next_value()?));
        }
        Ok(RelayMembers(members))
    }
}

struct RelayBody(Vec<(&'static str, Vec<u8>)>);

impl RelayBody {
    /// Sets a field: replaces its value, or adds the field before the conversation, which is always the last field.
    fn set(&mut self, name: &'static str, json: String) {
        let json = json.into_bytes();
        if let Some((_, value)) = self.0.iter_mut().find(|(known, _)| *known == name) {
            *value = json;
            return;
        }
        let last = self.0.len().saturating_sub(1);
        self.0.insert(last, (name, json));
    }

    fn remove(&mut self, name: &str) -> Option<Vec<u8>> {
        let place = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(place).1)
    }

    /// Returns the number in a field; `None` if the body does not have the field.
    fn number(&self, name: &str) -> Option<u64> {
        let (_, value) = self.0.iter().find(|(known, _)| *known == name)?;
        serde_json::from_slice(value).ok()
    }

    fn into_json(self) -> Bytes {
        let length: usize = self.0.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let mut json = Vec::with_capacity(length + 2);
        for (name, value) in self.0 {
            json.push(if json.is_empty() { b'{' } else { b',' });
            json.push(b'"');
            json.extend_from_slice(name.as_bytes());
            json.extend_from_slice(b"\":");
            json.extend_from_slice(&value);
        }
        json.push(b'}');
        json.into()
    }
}

/// Parses a client's request, and serialises it for the provider. `counted` has the token counts of earlier prompts.
pub(super) fn understand(
    kind: ProviderKind,
    body: &[u8],
    bounds: &RequestBounds<'_>,
    counted: &CountedPrompts,
) -> Result<RelayRequest, Refused> {
    let mut at = MemberPath::default();
    let text = std::str::from_utf8(body).map_err(|_| at.refused("is not UTF-8"))?;
    let found = RelayMembers::of(text).map_err(|why| at.refused(format!("is not a JSON object: {why}")))?;
    let table = table(kind);
    known(&found, table, &mut at)?;
    let (mut members, mut pictures) = (RelayBody(Vec::new()), 0);
    for Member { name, rule, is_needed } in table {
        match found.get(name) {
            Some(value) => {
                let out = rule::member(rule, name, value)?;
                pictures += out.pictures;
                members.0.push((name, out.bytes));
            }
            None if *is_needed => return Err(field(name, "is missing")),
            None => {}
        }
    }
    let model: String = found
        .get("model")
        .and_then(|model| serde_json::from_str(model.get()).ok())
        .ok_or_else(|| field("model", "is missing"))?;
    let (prices, most) = known_model(&model, bounds)?;
    let output = bound_reply(kind, &mut members, most, bounds)?;
    within_reply(&found, output)?;
    let trail = trail(&members, pictures, counted);
    let body = members.into_json();
    let whole = (body.len() as u64).saturating_add(pictures * OF_PICTURE);
    let prompt = counted.bound(&trail, OF_PICTURE).unwrap_or(whole).min(whole).saturating_add(ADDED);
    Ok(RelayRequest { model, estimate: RelayEstimate::of(prompt, output, &prices), body, prices, trail })
}

/// Returns the digests by which the next request is recognised as a continuation. The messages are the last field.
fn trail(members: &RelayBody, pictures: u64, counted: &CountedPrompts) -> Trail {
    let Some(((_, conversation), others)) = members.0.split_last() else { return Trail::default() };
    let mut before = Vec::new();
    // The limit on the reply is not a part of the prompt.
    for (name, value) in others.iter().filter(|(name, _)| !name.starts_with("max_")) {
        before.extend_from_slice(name.as_bytes());
        before.extend_from_slice(value);
    }
    let messages = serde_json::from_slice::<Vec<&RawValue>>(conversation).unwrap_or_default();
    counted.trail(&before, &messages, pictures)
}

const fn table(kind: ProviderKind) -> &'static [Member] {
    match kind {
        ProviderKind::Anthropic => messages::BODY,
        ProviderKind::OpenAi => chat::BODY,
        ProviderKind::Responses => responses::BODY,
    }
}

fn field(name: &str, why: impl Into<String>) -> Refused {
    Refused { field: name.to_owned(), why: why.into() }
}

/// Returns the prices of a model, and the maximum tokens of its reply. Fails if the client may not use the model.
fn known_model(model: &str, bounds: &RequestBounds<'_>) -> Result<(Prices, u64), Refused> {
    let refused = |why: &str| Err(field("model", format!("\"{}\" {why}", shown(model))));
    if model.is_empty() || model.len() > 200 || !model.bytes().all(|byte| byte.is_ascii_graphic()) {
        return refused("is not a name of a model");
    }
    let small = model.to_ascii_lowercase();
    if WITH_NETWORK.iter().any(|part| small.contains(part)) {
        return refused("searches the network by itself, and is not allowed by the relay");
    }
    if !bounds.models.is_empty() && !bounds.models.iter().any(|allowed| allowed == model) {
        return refused("is not one of the models that this relay allows");
    }
    let facts = (bounds.facts)(model);
    match facts.prices {
        Some(prices) => Ok((prices, u64::from(facts.max_output).min(bounds.max_reply).max(1))),
        None => refused("has no known price: the relay's settings can set a price under [models]"),
    }
}

/// Fails if the thinking budget exceeds the limit of the reply. A feature of the Messages API would permit that.
fn within_reply(found: &RelayMembers<'_>, output: u64) -> Result<(), Refused> {
    #[derive(Deserialize)]
    struct ThinkingBounds {
        budget_tokens: Option<u64>,
    }
    let thinking =
        found.get("thinking").and_then(|raw| serde_json::from_str::<ThinkingBounds>(raw.get()).ok());
    match thinking.and_then(|thinking| thinking.budget_tokens) {
        Some(tokens) if tokens >= output => {
            let why = format!("must be less than the longest reply, which is {output}");
            Err(field("thinking.budget_tokens", why))
        }
        _ => Ok(()),
    }
}

/// Sets the limit of the reply, in the field that the API and its server have for it. Returns the limit in tokens.
fn bound_reply(
    kind: ProviderKind,
    members: &mut RelayBody,
    most: u64,
    bounds: &RequestBounds<'_>,
) -> Result<u64, Refused> {
    let names: &[&'static str] = match kind {
        ProviderKind::Anthropic => &["max_tokens"],
        ProviderKind::OpenAi => &["max_tokens", "max_completion_tokens"],
        ProviderKind::Responses => &["max_output_tokens"],
    };
    // Servers differ on a limit of zero: some then send a reply of any length, for which nothing would be reserved.
    if let Some(name) = names.iter().find(|name| members.number(name) == Some(0)) {
        return Err(field(name, "must be at least 1"));
    }
    let asked = names.iter().filter_map(|name| members.number(name)).min();
    let limit = asked.unwrap_or(most).min(most);
    let name = match (kind, bounds.chat.reply_limit) {
        (ProviderKind::OpenAi, ReplyLimit::MaxCompletionTokens) => "max_completion_tokens",
        (ProviderKind::OpenAi, ReplyLimit::MaxTokens) | (ProviderKind::Anthropic, _) => "max_tokens",
        (ProviderKind::Responses, _) => "max_output_tokens",
    };
    for other in names.iter().filter(|other| **other != name) {
        members.remove(other);
    }
    members.set(name, limit.to_string());
    match kind {
        ProviderKind::Anthropic => {}
        // Without this option, there would be no token counts to charge.
        ProviderKind::OpenAi if bounds.chat.takes_stream_options => {
            members.set("stream_options", "{\"include_usage\":true}".to_owned());
        }
        ProviderKind::OpenAi => {
            members.remove("stream_options");
        }
        ProviderKind::Responses => members.set("store", "false".to_owned()),
    }
    Ok(limit)
}
