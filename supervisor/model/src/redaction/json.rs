//! The strings of a JSON text, one after another; everything else stays byte for byte.

use std::borrow::Cow;

use super::Redaction;

/// A JSON text whose strings have no secrets. A string that holds JSON itself is text like any other.
pub(super) fn without<'a>(json: &'a str, redaction: &mut Redaction) -> Cow<'a, str> {
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    // The name of the member whose value comes next.
    let mut name: Option<String> = None;
    while let Some((start, end)) = next(json, at) {
        let literal = json.get(start..end).unwrap_or_default();
        let text = decoded(literal);
        let is_name = json.get(end..).unwrap_or_default().trim_start().starts_with(':');
        let of = name.take().filter(|_| is_value(json.get(at..start).unwrap_or_default()));
        if let Some(without) = clean(&text, of.as_deref(), redaction) {
            out.push_str(json.get(kept..start).unwrap_or_default());
            out.push_str(&encoded(&without));
            kept = end;
        }
        name = is_name.then(|| text.into_owned());
        at = end;
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(kept..).unwrap_or_default());
    Cow::Owned(out)
}

/// The text without secrets, if it had any.
fn clean(text: &str, name: Option<&str>, redaction: &mut Redaction) -> Option<String> {
    let of_name = name.and_then(|name| redaction.value(name, text));
    let without = redaction.text(of_name.as_deref().unwrap_or(text));
    match without {
        Cow::Owned(without) => Some(without),
        Cow::Borrowed(_) => of_name,
    }
}

/// True if only the colon is between a name and its value.
fn is_value(between: &str) -> bool {
    between.trim() == ":"
}

/// The next string, with its quotes.
fn next(json: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = json.as_bytes();
    let start = from + memchr::memchr(b'"', bytes.get(from..)?)?;
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some((start, at + 1)),
            _ => at += 2,
        }
    }
}

/// The text of a string; one that has half a character stays as it is written.
fn decoded(literal: &str) -> Cow<'_, str> {
    let inner = || literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
    match serde_json::from_str::<String>(literal) {
        Ok(text) if text == inner() => Cow::Borrowed(inner()),
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(inner()),
    }
}

fn encoded(text: &str) -> String {
    // A text always has a JSON form.
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}
