use std::fmt;

use toml_edit::{Item, Value};

use super::{Api, Entry, ThinkingKind, prices};
use crate::provider::Effort;
use crate::provider::anthropic::ApiVersion;

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub expected: &'static str,
    pub about: &'static str,
    /// Sets the property of an entry to a value from a settings file; `None` if the value is invalid.
    pub read: fn(&mut Entry, &Item) -> Option<()>,
    /// Returns the entry's value in the syntax of a settings file; `None` if the entry does not set the property.
    pub shown: fn(&Entry) -> Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFact {
    Unknown,
    /// The value is invalid; the text describes a valid one.
    Expected(&'static str),
}

impl fmt::Display for BadFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => {
                let known: Vec<_> = FIELDS.iter().map(|field| field.name).collect();
                write!(f, "unknown; a model has {}", known.join(", "))
            }
            Self::Expected(what) => write!(f, "expected {what}"),
        }
    }
}

const MOST: u64 = 1 << 31;

/// All properties, in the order of display.
pub const FIELDS: &[Field] = &[
    Field {
        name: "api",
        expected: "\"messages\", \"chat\" or \"responses\"",
        about: "The API of the model's server: Anthropic's Messages API, OpenAI's chat completions or Responses API, or a compatible API.",
        read: |entry, item| put(&mut entry.api, word(item, &Api::ALL, Api::as_str)),
        shown: |entry| Some(quoted(entry.api?.as_str())),
    },
    Field {
        name: "api_version",
        expected: "\"2026-10-21\" or \"2023-06-01\"",
        about: "The version of the Messages API; old models and many gateways support only the older version.",
        read: |entry, item| {
            let known = [ApiVersion::V2026_10_21, ApiVersion::V2023_06_01];
            put(&mut entry.api_version, word(item, &known, ApiVersion::as_str))
        },
        shown: |entry| Some(quoted(entry.api_version?.as_str())),
    },
    Field {
        name: "context",
        expected: "a number of tokens",
        about: "The most tokens of a prompt and its reply together.",
        read: |entry, item| put(&mut entry.context, tokens(item)),
        shown: |entry| Some(entry.context?.to_string()),
    },
    Field {
        name: "max_output",
        expected: "a number of tokens",
        about: "The most tokens of a reply. Bailiwick asks for at most 32,000 tokens.",
        read: |entry, item| put(&mut entry.max_output, small(item)),
        shown: |entry| Some(entry.max_output?.to_string()),
    },
    Field {
        name: "prices",
        expected: prices::EXPECTED,
        about: "What a million tokens cost in US dollars. Prices of the cache that are left out are the same as the price of input.",
        read: |entry, item| put(&mut entry.prices, prices::read(item)),
        shown: |entry| Some(prices::shown(&entry.prices?)),
    },
    Field {
        name: "thinking",
        expected: "\"none\", \"budget\" or \"adaptive\"",
        about: "How Bailiwick tells the model to think: not at all, with a budget of tokens, or with a level of effort.",
        read: |entry, item| put(&mut entry.thinking, word(item, &ThinkingKind::ALL, ThinkingKind::as_str)),
        shown: |entry| Some(quoted(entry.thinking?.as_str())),
    },
    Field {
        name: "effort",
        expected: "a list out of \"low\", \"medium\", \"high\", \"xhigh\", \"max\"",
        about: "The levels of effort that the model supports.",
        read: |entry, item| {
            let levels =
                item.as_array()?.iter().map(|level| one_of(level.as_str()?, &Effort::ALL, Effort::as_str));
            put(&mut entry.effort, levels.collect())
        },
        shown: |entry| {
            let levels: Vec<_> = entry.effort.as_ref()?.iter().map(|level| quoted(level.as_str())).collect();
            Some(format!("[{}]", levels.join(", ")))
        },
    },
    Field {
        name: "images",
        expected: "true or false",
        about: "True if the model can see pictures.",
        read: |entry, item| put(&mut entry.images, item.as_bool()),
        shown: |entry| Some(entry.images?.to_string()),
    },
];

fn put<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    *place = Some(value?);
    Some(())
}

fn word<T: Copy>(item: &Item, known: &[T], as_str: fn(T) -> &'static str) -> Option<T> {
    one_of(item.as_str()?, known, as_str)
}

fn one_of<T: Copy>(word: &str, known: &[T], as_str: fn(T) -> &'static str) -> Option<T> {
    known.iter().copied().find(|one| as_str(*one) == word)
}

fn tokens(item: &Item) -> Option<u64> {
    positive(item.as_value()?)
}

fn small(item: &Item) -> Option<u32> {
    tokens(item)?.try_into().ok()
}

pub(super) fn positive(value: &Value) -> Option<u64> {
    let number = u64::try_from(value.as_integer()?).ok()?;
    (1..=MOST).contains(&number).then_some(number)
}

fn quoted(word: &str) -> String {
    format!("{word:?}")
}
