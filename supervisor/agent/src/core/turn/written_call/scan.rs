//! Recognises a text that consists only of tool calls, in the forms in which models learn to write them.

use serde_json::Value;

use super::elements::{self, Tag};
use super::json;

/// Words that can stand between the special tokens of a call.
const WORDS: [&str; 9] = [
    "assistantcommentary",
    "assistant",
    "commentary",
    "analysis",
    "function",
    "functools",
    "json",
    "code",
    "tool_call",
];

/// Special tokens of tool calls that are written in square brackets.
const BRACKETS: [&str; 6] =
    ["[TOOL_CALLS]", "[/TOOL_CALLS]", "[TOOL_REQUEST]", "[END_TOOL_REQUEST]", "[ARGS]", "[tool_calls]"];

/// Words with which a text can begin only if it is a call.
const MARKED: [&str; 5] =
    ["functions.", "functools[", "to=functions.", "commentary to=", "assistantcommentary"];

pub(super) struct CallScan<'a, 't> {
    text: &'a str,
    tools: &'a [&'t str],
}

impl<'a, 't> CallScan<'a, 't> {
    pub(super) const fn new(text: &'a str, tools: &'a [&'t str]) -> Self {
        Self { text, tools }
    }

    /// True if the text begins with a special token or a word that only calls have.
    pub(super) fn is_marked(&self) -> bool {
        let text = self.text.trim_start();
        let tag = Tag::at(text).filter(|tag| !tag.is_closing());
        tag.is_some_and(|tag| tag.is_token() || tag.is_around() || tag.tool(self.tools).is_some())
            || BRACKETS.iter().chain(&MARKED).any(|mark| text.starts_with(mark))
    }

    /// True if the text begins like a call without a special token.
    pub(super) fn may_be_call(&self) -> bool {
        let text = self.text.trim_start();
        text.starts_with(['{', '['])
            || ["Action:", "print("].iter().chain(self.tools).any(|word| text.starts_with(word))
    }

    /// Returns the tool of the first call; `None` unless the text consists of calls only.
    pub(super) fn whole(&self) -> Option<&'t str> {
        let is_marked = self.is_marked();
        let mut rest = self.text;
        let mut first = None;
        loop {
            rest = without_marks(rest, self.tools);
            if rest.is_empty() {
                return first;
            }
            let (tool, behind) = self.call(rest, is_marked)?;
            first = first.or(Some(tool));
            rest = behind;
        }
    }

    /// Returns the tool of the call at the beginning of a text, and the text after it; `None` if there is no call.
    fn call(&self, text: &'a str, is_marked: bool) -> Option<(&'t str, &'a str)> {
        if text.starts_with(['{', '[']) {
            return self
                .json(text)
                .or_else(|| self.list_of_calls(text))
                .or_else(|| if is_marked { self.broken_json(text) } else { None });
        }
        elements::call(text, self.tools)
            .or_else(|| elements::named_by_child(text, self.tools))
            .or_else(|| self.action(text))
            .or_else(|| self.named(text, is_marked))
    }

    fn json(&self, text: &'a str) -> Option<(&'t str, &'a str)> {
        let (value, rest) = value(text)?;
        Some((json::tool_of(&value, self.tools)?, rest))
    }

    /// Recognises a call in invalid JSON, which a server did not parse and therefore left in the text.
    fn broken_json(&self, text: &'a str) -> Option<(&'t str, &'a str)> {
        if value(text).is_some() {
            return None;
        }
        let ends = ["</", "<|", "<｜", "[/", "[END"].iter().filter_map(|mark| text.rfind(mark));
        let (call, rest) = text.split_at(ends.min().unwrap_or(text.len()));
        let is_closed = call.trim_end().ends_with(['}', ']', '"']);
        let tool = self.tools.iter().find(|tool| call.contains(&format!("\"{tool}\"")))?;
        is_closed.then_some((*tool, rest))
    }

    /// Recognises `[read_file(path="a"), …]`.
    fn list_of_calls(&self, text: &'a str) -> Option<(&'t str, &'a str)> {
        let inner = text.strip_prefix('[')?;
        let (name, _) = inner.split_once('(')?;
        let tool = json::offered(name, self.tools)?;
        let end = inner.rfind(")]")?;
        Some((tool, &inner[end + 2..]))
    }

    /// Recognises `Action: read_file`, and its input in the next line.
    fn action(&self, text: &'a str) -> Option<(&'t str, &'a str)> {
        let (name, rest) = text.strip_prefix("Action:")?.split_once('\n')?;
        let tool = json::offered(name.trim().trim_matches(['`', '*']), self.tools)?;
        let input = rest.trim_start().strip_prefix("Action Input:")?.trim_start();
        let behind = match value(input) {
            Some((_, rest)) => rest,
            None => input.split_once('\n').map_or("", |(_, rest)| rest),
        };
        Some((tool, behind.trim_start().strip_prefix("Observation:").map_or(behind, str::trim_start)))
    }

    /// Recognises a name that is followed by arguments in one of many forms.
    fn named(&self, text: &'a str, is_marked: bool) -> Option<(&'t str, &'a str)> {
        let text = ["to=", "call:", "print("].iter().find_map(|word| text.strip_prefix(word)).unwrap_or(text);
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let end = text.find(|c| !is_of_name(c))?;
        let tool = json::offered(&text[..end], self.tools)?;
        let rest = without_marks(&text[end..], self.tools);
        let rest =
            rest.strip_prefix("```json").or_else(|| rest.strip_prefix("```")).unwrap_or(rest).trim_start();
        if let Some(behind) = behind_arguments(&text[end..]) {
            return Some((tool, behind.trim_start_matches(')')));
        }
        if rest.starts_with('{') {
            return match value(rest) {
                Some((Value::Object(_), behind)) => Some((tool, behind.trim_start().trim_start_matches('`'))),
                _ if is_marked => rest.rfind('}').map(|end| (tool, &rest[end + 1..])),
                _ => None,
            };
        }
        let has_pairs = rest.starts_with("<arg_key>") || rest.starts_with("<parameter");
        has_pairs.then(|| (tool, rest.rfind("</").map_or("", |last| &rest[last..])))
    }
}

/// Returns the text after the arguments of a function, such as `(path="a")`; `None` if there are none.
fn behind_arguments(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let first = inner.trim_start();
    let is_list = first.trim_start_matches(is_name).trim_start().starts_with('=')
        || first.starts_with(['"', '\'', '{', ')']);
    let (mut depth, mut quote, mut is_escaped) = (1_usize, None, false);
    let end = inner.char_indices().find_map(|(at, c)| {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) => quote = quote.filter(|_| open != c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
        (depth == 0).then_some(at)
    })?;
    is_list.then(|| &inner[end + 1..])
}

/// Returns the JSON value at the beginning of a text, and the text after the value; `None` if there is no value.
fn value(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

/// Removes special tokens before, between and after calls.
fn without_marks<'a>(text: &'a str, tools: &[&str]) -> &'a str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        let behind =
            BRACKETS.iter().find_map(|mark| rest.strip_prefix(mark)).or_else(|| behind_word(rest)).or_else(
                || {
                    let tag = Tag::at(rest)?;
                    let is_mark = tag.is_token()
                        || tag.is_closing()
                        || tag.is_around() && elements::call(rest, tools).is_none();
                    is_mark.then_some(tag.rest)
                },
            );
        match behind {
            Some(behind) => rest = behind,
            None => return rest,
        }
    }
}

/// Returns the text after a word that belongs to a call; `None` if there is no such word, or a letter follows it.
fn behind_word(text: &str) -> Option<&str> {
    let behind = WORDS.iter().find_map(|word| text.strip_prefix(word))?;
    behind
        .starts_with(|c: char| c.is_whitespace() || matches!(c, '<' | '{' | '[' | ':'))
        .then(|| behind.trim_start_matches(':'))
}
