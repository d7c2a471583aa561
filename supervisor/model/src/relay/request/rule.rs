//! The language of the allowlists: the permitted content of a request, as data.
//!
//! [`RelayRule::write`] parses JSON by a rule and serialises it again. Only below [`RelayRule::Kept`] are the client's
//! own bytes kept, because a provider's cache depends on the bytes of a conversation.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::free::{self, Free};
use super::{Refused, RelayMembers};

/// Maximum characters that an error quotes from a client's request.
const SHOWN: usize = 60;

/// The values that are permitted in one place of a request.
#[derive(Debug)]
pub(super) enum RelayRule {
    Text,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// A boolean with this value.
    Is(bool),
    Bool,
    Null,
    /// A non-negative whole number.
    Count,
    Exactly(u64),
    /// A number in this range.
    Between(f64, f64),
    Base64,
    /// A string with a data URL of a picture.
    PictureUrl,
    /// An object without listed fields, checked as [`Free`] says. Only the model and its tools read it.
    Free(Free),
    List(&'static RelayRule, usize),
    Empty,
    Object(&'static [Member]),
    /// An object. The value of the named field decides which other fields the object may have.
    Tagged(&'static str, &'static [(&'static str, &'static [Member])]),
    /// The first of these rules whose JSON type is that of the value.
    ByKind(&'static [RelayRule]),
    /// A value that follows this rule. The client's bytes of the value are kept.
    Kept(&'static RelayRule),
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) rule: RelayRule,
    pub(super) is_needed: bool,
}

pub(super) const fn must(name: &'static str, rule: RelayRule) -> Member {
    Member { name, rule, is_needed: true }
}

pub(super) const fn may(name: &'static str, rule: RelayRule) -> Member {
    Member { name, rule, is_needed: false }
}

#[derive(Debug, Default)]
pub(super) struct MemberPath(String);

impl MemberPath {
    fn member<T>(&mut self, name: &str, within: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.0.len();
        if length > 0 {
            self.0.push('.');
        }
        self.0.push_str(&shown(name));
        let done = within(self);
        self.0.truncate(length);
        done
    }

    fn element<T>(&mut self, index: usize, within: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.0.len();
        // Writing to a String cannot fail.
        let _ = write!(self.0, "[{index}]");
        let done = within(self);
        self.0.truncate(length);
        done
    }

    pub(super) fn refused(&self, why: impl Into<String>) -> Refused {
        let field = if self.0.is_empty() { "the body".to_owned() } else { self.0.clone() };
        Refused { field, why: why.into() }
    }
}

/// Shortens and escapes a client's text for an error.
pub(super) fn shown(word: &str) -> String {
    let mut text: String = word.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if word.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}

#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) bytes: Vec<u8>,
    pub(super) pictures: u64,
    keeps: bool,
}

impl Out {
    fn push(&mut self, text: &str) {
        if !self.keeps {
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    fn json(&mut self, value: &impl serde::Serialize, at: &MemberPath) -> Result<(), Refused> {
        if self.keeps {
            return Ok(());
        }
        serde_json::to_writer(&mut self.bytes, value).map_err(|_| at.refused("cannot be written as JSON"))
    }
}

/// Text of a JSON string; borrowed if it has no escapes.
#[derive(Deserialize)]
struct TextRule<'a>(#[serde(borrow)] Cow<'a, str>);

impl RelayRule {
    /// Parses a value by this rule, and writes the value to `out`. Fails if the value breaks the rule.
    pub(super) fn write(&self, raw: &RawValue, at: &mut MemberPath, out: &mut Out) -> Result<(), Refused> {
        let json = raw.get();
        match self {
            Self::Text => {
                let text = text(json, at)?;
                out.json(&text, at)
            }
            Self::Word(words) => {
                let word = text(json, at)?;
                match words.iter().find(|known| **known == word) {
                    Some(known) => out.json(known, at),
                    None => Err(at.refused(format!("\"{}\" is not relayed", shown(&word)))),
                }
            }
            Self::Is(wanted) => match bool(json, at)? {
                is if is == *wanted => out.json(wanted, at),
                _ => Err(at.refused(format!("must be {wanted}"))),
            },
            Self::Bool => out.json(&bool(json, at)?, at),
            Self::Null if json == "null" => {
                out.push("null");
                Ok(())
            }
            Self::Null => Err(at.refused("must be null")),
            Self::Count => out.json(&count(json, at)?, at),
            Self::Exactly(wanted) => match count(json, at)? {
                is if is == *wanted => out.json(wanted, at),
                _ => Err(at.refused(format!("must be {wanted}"))),
            },
            Self::Between(least, most) => match serde_json::from_str::<f64>(json) {
                Ok(number) if (*least..=*most).contains(&number) => out.json(&number, at),
                _ => Err(at.refused(format!("must be a number from {least} to {most}"))),
            },
            Self::Base64 => {
                let text = text(json, at)?;
                base64(&text, at)?;
                out.pictures += 1;
                out.json(&text, at)
            }
            Self::PictureUrl => {
                let url = text(json, at)?;
                let data = ["png", "jpeg", "gif", "webp"].iter().find_map(|kind| {
                    url.strip_prefix("data:image/")?.strip_prefix(kind)?.strip_prefix(";base64,")
                });
                base64(data.ok_or_else(|| at.refused("must be a data: URL with a picture in base64"))?, at)?;
                out.pictures += 1;
                out.json(&url, at)
            }
            Self::Free(free) => {
                free::check(json, *free).map_err(|why| at.refused(why))?;
                out.push(json);
                Ok(())
            }
            Self::List(rule, most) => list(json, rule, *most, at, out),
            Self::Empty if elements(json, at)?.is_empty() => {
                out.push("[]");
                Ok(())
            }
            Self::Empty => Err(at.refused("must be empty")),
            Self::Object(members) => {
                object(&RelayMembers::of(json).map_err(|why| at.refused(why))?, members, at, out)
            }
            Self::Tagged(tag, kinds) => tagged(json, tag, kinds, at, out),
            Self::ByKind(rules) => match rules.iter().find(|rule| rule.fits(json)) {
                Some(rule) => rule.write(raw, at, out),
                None => Err(at.refused("has the wrong type")),
            },
            Self::Kept(rule) => {
                let kept = std::mem::replace(&mut out.keeps, true);
                let checked = rule.write(raw, at, out);
                out.keeps = kept;
                checked?;
                out.push(json);
                Ok(())
            }
        }
    }

    /// True if the first character of `json` is that of a value which the rule permits.
    fn fits(&self, json: &str) -> bool {
        let first = json.as_bytes().first().copied().unwrap_or_default();
        match self {
            Self::Text | Self::Word(_) | Self::Base64 | Self::PictureUrl => first == b'"',
            Self::Is(_) | Self::Bool => matches!(first, b't' | b'f'),
            Self::Null => first == b'n',
            Self::Count | Self::Exactly(_) | Self::Between(..) => first.is_ascii_digit() || first == b'-',
            Self::List(..) | Self::Empty => first == b'[',
            Self::Object(_) | Self::Tagged(..) => first == b'{',
            Self::Free(_) => true,
            Self::ByKind(rules) => rules.iter().any(|rule| rule.fits(json)),
            Self::Kept(rule) => rule.fits(json),
        }
    }
}

fn text<'a>(json: &'a str, at: &MemberPath) -> Result<Cow<'a, str>, Refused> {
    serde_json::from_str::<TextRule<'a>>(json).map(|text| text.0).map_err(|_| at.refused("must be a text"))
}

fn bool(json: &str, at: &MemberPath) -> Result<bool, Refused> {
    serde_json::from_str(json).map_err(|_| at.refused("must be true or false"))
}

fn count(json: &str, at: &MemberPath) -> Result<u64, Refused> {
    serde_json::from_str(json).map_err(|_| at.refused("must be a whole number"))
}

fn base64(text: &str, at: &MemberPath) -> Result<(), Refused> {
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let data = text.trim_end_matches('=');
    if !data.is_empty() && text.len() - data.len() <= 2 && data.bytes().all(is_data) {
        Ok(())
    } else {
        Err(at.refused("must be base64"))
    }
}

fn elements<'a>(json: &'a str, at: &MemberPath) -> Result<Vec<&'a RawValue>, Refused> {
    serde_json::from_str(json).map_err(|_| at.refused("must be a list"))
}

fn list(
    json: &str,
    rule: &RelayRule,
    most: usize,
    at: &mut MemberPath,
    out: &mut Out,
) -> Result<(), Refused> {
    let elements = elements(json, at)?;
    if elements.len() > most {
        return Err(at.refused(format!("has more than {most} elements")));
    }
    out.push("[");
    for (index, element) in elements.into_iter().enumerate() {
        if index > 0 {
            out.push(",");
        }
        at.element(index, |at| rule.write(element, at, out))?;
    }
    out.push("]");
    Ok(())
}

fn object(
    found: &RelayMembers<'_>,
    members: &[Member],
    at: &mut MemberPath,
    out: &mut Out,
) -> Result<(), Refused> {
    known(found, members, at)?;
    out.push("{");
    let mut is_first = true;
    for Member { name, rule, is_needed } in members {
        let Some(value) = found.get(name) else {
            if *is_needed {
                return Err(at.member(name, |at| at.refused("is missing")));
            }
            continue;
        };
        if !std::mem::take(&mut is_first) {
            out.push(",");
        }
        out.json(name, at)?;
        out.push(":");
        at.member(name, |at| rule.write(value, at, out))?;
    }
    out.push("}");
    Ok(())
}

/// Fails if the object has a field that the rule does not list.
pub(super) fn known(
    found: &RelayMembers<'_>,
    members: &[Member],
    at: &mut MemberPath,
) -> Result<(), Refused> {
    match found.names().find(|name| !members.iter().any(|member| member.name == *name)) {
        Some(name) => Err(at.member(name, |at| at.refused("is not relayed"))),
        None => Ok(()),
    }
}

pub(super) fn member(rule: &RelayRule, name: &str, value: &RawValue) -> Result<Out, Refused> {
    let (mut at, mut out) = (MemberPath::default(), Out::default());
    at.member(name, |at| rule.write(value, at, &mut out))?;
    Ok(out)
}

fn tagged(
    json: &str,
    tag: &str,
    kinds: &[(&str, &'static [Member])],
    at: &mut MemberPath,
    out: &mut Out,
) -> Result<(), Refused> {
    let found = RelayMembers::of(json).map_err(|why| at.refused(why))?;
    let Some(value) = found.get(tag) else {
        return Err(at.member(tag, |at| at.refused("is missing")));
    };
    let word = at.member(tag, |at| text(value.get(), at))?;
    match kinds.iter().find(|(kind, _)| *kind == word) {
        Some((_, members)) => object(&found, members, at, out),
        None => Err(at.member(tag, |at| at.refused(format!("\"{}\" is not relayed", shown(&word))))),
    }
}
