//! Converts TOML items to the kinds of values that keys expect.

use std::ffi::OsString;

use boundary::policy::split_variable;
use gate::command_line::parse_prefix;
use ipc::rights::Network;
use protocol::cost::Usd;
use protocol::network_words;
use toml_edit::{Item, Value as Toml};

use crate::settings::config::keys::{Key, Kind};
use crate::settings::config::origin::ConfigOrigin;
use crate::settings::config::value::{Element, Value, time_of};

/// Maximum size in bytes of a text: the limit of a path (`PATH_MAX`).
const LONGEST: usize = 4096;

const MOST: usize = 500;

#[derive(Debug)]
pub(super) struct BadValue {
    pub(super) at: usize,
    pub(super) expected: String,
}

/// Reads the value of a key. `origin` converts the byte offset `at` to a position. Fails for a value of another kind.
pub(super) fn value(
    key: &Key,
    item: &Item,
    at: usize,
    origin: &dyn Fn(usize) -> ConfigOrigin,
) -> Result<Value, BadValue> {
    let at = item.span().map_or(at, |span| span.start);
    let read = if is_list(key.kind) { list(key.kind, item, at, origin)? } else { single(key.kind, item) };
    read.ok_or_else(|| BadValue { at, expected: expected(key.kind) })
}

const fn is_list(kind: Kind) -> bool {
    matches!(kind, Kind::Choices(_) | Kind::Paths | Kind::Variables | Kind::Commands | Kind::Names)
}

fn single(kind: Kind, item: &Item) -> Option<Value> {
    let text = item.as_str().filter(|text| is_line(text));
    let text =
        |fits: &dyn Fn(&str) -> bool| text.filter(|text| fits(text)).map(|text| Value::Text(text.to_owned()));
    match kind {
        Kind::Text => text(&|_| true),
        Kind::Address => text(&is_address),
        Kind::Choice(words) => text(&|word| words.contains(&word)),
        Kind::Switch => item.as_bool().map(Value::Switch),
        Kind::Network => hosts(item).map(Value::Network),
        Kind::Amount => amount(item).filter(|amount| *amount > Usd::ZERO).map(Value::Amount),
        Kind::Time => seconds(item).and_then(time_of).map(Value::Time),
        Kind::Count { least, most } => {
            let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
            number.filter(|number| (least..=most).contains(number)).map(Value::Number)
        }
        Kind::Choices(_) | Kind::Paths | Kind::Variables | Kind::Commands | Kind::Names => None,
    }
}

/// Reads `off` or a list of hosts; `None` for another value. A settings file cannot turn the whole network on.
fn hosts(item: &Item) -> Option<Network> {
    if let Some(word) = item.as_str() {
        return (word == "off").then_some(Network::Off);
    }
    let array = item.as_array().filter(|array| array.len() <= MOST)?;
    let entries: Vec<_> = array.iter().map(Toml::as_str).collect::<Option<_>>()?;
    if entries.is_empty() {
        Some(Network::Off)
    } else {
        network_words::hosts(entries).ok().map(Network::Hosts)
    }
}

/// Reads a list; `None` if the item is no list, or if it has too many elements. Fails if an element is invalid.
fn list(
    kind: Kind,
    item: &Item,
    at: usize,
    origin: &dyn Fn(usize) -> ConfigOrigin,
) -> Result<Option<Value>, BadValue> {
    let Some(array) = item.as_array().filter(|array| array.len() <= MOST) else { return Ok(None) };
    let element = |value: &Toml| {
        let at = value.span().map_or(at, |span| span.start);
        match words(kind, value) {
            Some(words) => Ok(Element { words, origin: origin(at) }),
            None => Err(BadValue { at, expected: expected(kind) }),
        }
    };
    let elements: Result<Vec<_>, _> = array.iter().map(element).collect();
    elements.map(|elements| Some(Value::List(elements)))
}

fn words(kind: Kind, value: &Toml) -> Option<Vec<OsString>> {
    if kind == Kind::Commands {
        let words: Option<Vec<_>> =
            value.as_array()?.iter().map(|word| Some(word.as_str()?.to_owned())).collect();
        // The words must form a prefix that the gate accepts.
        let words = words.filter(|words| parse_prefix(&words.join(" ")).as_ref() == Ok(words))?;
        return Some(words.into_iter().map(OsString::from).collect());
    }
    let word = value.as_str()?;
    let fits = match kind {
        Kind::Choices(known) => known.contains(&word),
        Kind::Names => is_line(word),
        Kind::Paths => !word.is_empty() && word.len() <= LONGEST && !word.contains('\0'),
        Kind::Variables => {
            word.len() <= LONGEST && !word.contains('\0') && split_variable(word.as_ref()).is_some()
        }
        _ => false,
    };
    fits.then(|| vec![word.into()])
}

/// Reads an amount; `None` for any other item. A float counts as the number that its shortest decimal form states.
fn amount(item: &Item) -> Option<Usd> {
    let number = item.as_integer().map(|number| number.to_string());
    number.or_else(|| item.as_float().map(|number| number.to_string()))?.parse().ok()
}

/// Reads a number of seconds, with or without a fraction; `None` for another item. Whole numbers below 2^53 are exact.
#[expect(clippy::cast_precision_loss, reason = "what is not exact is far beyond what is accepted")]
fn seconds(item: &Item) -> Option<f64> {
    item.as_float().or_else(|| item.as_integer().map(|number| number as f64))
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST && !text.contains(char::is_control)
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let socket = text.strip_prefix("unix:").filter(|path| path.starts_with('/'));
    rest.or(socket).is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

/// Describes the form that values of a kind have.
fn expected(kind: Kind) -> String {
    let quoted = |words: &[&str]| words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    match kind {
        Kind::Text => "a text of one line, as in \"…\"".to_owned(),
        Kind::Address => {
            "an address that begins with https://, http:// or unix:/, as in \"https://…\"".to_owned()
        }
        Kind::Choice([word]) => format!("{word:?}"),
        Kind::Choice(words) => format!("one of {}", quoted(words)),
        Kind::Choices(words) => format!("a list of any of {}", quoted(words)),
        Kind::Paths => format!("a list of at most {MOST} paths, as in [\"a\", \"/b\", \"~/c\"]"),
        Kind::Names => format!("a list of at most {MOST} names, as in [\"a\", \"b\"]"),
        Kind::Variables => format!("a list of at most {MOST} variables, as in [\"NAME\", \"NAME=VALUE\"]"),
        Kind::Commands => {
            format!(
                "a list of at most {MOST} beginnings of commands in plain words, as in [[\"cargo\", \"test\"], [\"make\"]]"
            )
        }
        Kind::Count { least, most } => format!("a number from {least} to {most}"),
        Kind::Time => "a number of seconds from 0.001 to 31536000".to_owned(),
        Kind::Amount => "an amount in US dollars above 0, as in 2.50".to_owned(),
        Kind::Switch => "true or false".to_owned(),
        Kind::Network => {
            format!(
                "\"off\", or a list of at most {MOST} hosts, as in [\"docs.example\", \"docs.example:8443\", \"@npm\"]"
            )
        }
    }
}
