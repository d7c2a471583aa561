//! Redacts the strings in a JSON text. All other bytes stay unchanged.

use std::borrow::Cow;

use super::Redaction;

pub(super) fn without<'a>(json: &'a str, redaction: &mut Redaction) -> Cow<'a, str> {
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    // Name of the field whose value comes next.
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

/// Redacts a text. `name` is that of the field whose value the text is. Returns `None` if the text has no secrets.
fn clean(text: &str, name: Option<&str>, redaction: &mut Redaction) -> Option<String> {
    let of_name = name.and_then(|name| redaction.value(name, text));
    let without = redaction.text(of_name.as_deref().unwrap_or(text));
    match without {
        Cow::Owned(without) => Some(without),
        Cow::Borrowed(_) => of_name,
    }
}

/// True if only a colon is `between` a name and a string, so that the string is the value of that name.
fn is_value(between: &str) -> bool {
    between.trim() == ":"
}

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

/// Decodes a JSON string. A string with a lone surrogate is returned as written.
fn decoded(literal: &str) -> Cow<'_, str> {
    let inner = || literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
    match serde_json::from_str::<String>(literal) {
        Ok(text) if text == inner() => Cow::Borrowed(inner()),
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(inner()),
    }
}

fn encoded(text: &str) -> String {
    // Every text can be written as JSON.
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}
