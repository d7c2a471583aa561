//! Recognises calls in the form of elements with tags: `<function=NAME>`, `<invoke name="NAME">`, `<NAME>`.

use super::json;

/// Maximum bytes of a tag that is parsed.
const LONGEST_TAG: usize = 200;

pub(super) struct Tag<'a> {
    /// The text between the angle brackets.
    pub(super) inner: &'a str,
    pub(super) rest: &'a str,
}

impl<'a> Tag<'a> {
    pub(super) fn at(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('<')?;
        let end = text.bytes().take(LONGEST_TAG).position(|byte| byte == b'>')?;
        let (inner, rest) = (&text[..end], &text[end + 1..]);
        (!inner.contains(['\n', '<', '{'])).then_some(Self { inner, rest })
    }

    /// True for a special token of a chat template: `<|…|>`, also with wide bars.
    pub(super) fn is_token(&self) -> bool {
        let ends = |bar: char| {
            self.inner.len() > bar.len_utf8() && self.inner.starts_with(bar) && self.inner.ends_with(bar)
        };
        ends('|') || ends('｜')
    }

    pub(super) fn is_closing(&self) -> bool {
        self.inner.starts_with('/')
    }

    pub(super) fn is_around(&self) -> bool {
        let word = self.inner.to_ascii_lowercase();
        let is_word =
            word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-'));
        is_word && ["tool", "function", "action"].iter().any(|part| word.contains(part))
    }

    fn element(&self) -> &'a str {
        self.inner.split([' ', '=']).next().unwrap_or_default()
    }

    pub(super) fn tool<'t>(&self, tools: &[&'t str]) -> Option<&'t str> {
        let element = self.element();
        if let Some(tool) = json::offered(self.inner, tools) {
            return Some(tool);
        }
        let element = element.rsplit(':').next().unwrap_or_default();
        if !matches!(
            element,
            "function" | "invoke" | "tool" | "tool_call" | "function_call" | "tool_use" | "call"
        ) {
            return None;
        }
        let (_, value) = self.inner.split_once('=')?;
        let value = value.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '/'));
        json::offered(value.split(['"', '\'']).next()?, tools)
    }
}

/// Returns the tool of a call at the beginning of a text, and the text after the call; `None` if there is no call.
pub(super) fn call<'a, 't>(text: &'a str, tools: &[&'t str]) -> Option<(&'t str, &'a str)> {
    let tag = Tag::at(text)?;
    let tool = tag.tool(tools)?;
    if tag.inner.ends_with('/') {
        return Some((tool, tag.rest));
    }
    let close = format!("</{}>", tag.element());
    // The last closing tag counts, because the arguments may contain such tags too.
    let rest = tag.rest.rsplit_once(&close).map_or("", |(_, rest)| rest);
    Some((tool, rest))
}

/// Returns the tool of a call that a child element names, `<name>read_file</name>`, and the text after the call; `None`
/// if there is no such call.
pub(super) fn named_by_child<'a, 't>(text: &'a str, tools: &[&'t str]) -> Option<(&'t str, &'a str)> {
    let tag = Tag::at(text).filter(|tag| matches!(tag.inner, "name" | "tool_name"))?;
    let (name, rest) = tag.rest.split_once("</")?;
    let tool = json::offered(name, tools)?;
    // The arguments end with the element around the whole call.
    let behind =
        rest.rsplit_once("</").and_then(|(_, last)| last.split_once('>')).map_or("", |(_, rest)| rest);
    Some((tool, behind))
}
