//! `bailiwick config`: what holds, and where each of it comes from.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::Sources;
use crate::app::exit::Exit;
use crate::config::{Element, Ignored, Key, Kind, Layer, Origin, Preset, Value};

/// One line: a value, or one element of a list.
struct Row {
    key: &'static Key,
    value: Option<Value>,
    origin: Origin,
    /// Whether the value does not hold as long as the project is not trusted.
    ignored: bool,
}

/// Prints it.
pub(super) fn run(sources: &Sources, json: bool) -> Exit {
    let flags = Layer::default();
    let effective = sources.effective(&flags);
    let settled = effective.settled.iter().flat_map(|settled| {
        let elements = settled.value.as_ref().map(Value::elements).unwrap_or_default();
        rows(settled.key, settled.value.as_ref(), elements, &settled.origin)
    });
    let ignored = effective.ignored.iter().map(|Ignored { key, value, origin }| Row {
        key,
        value: Some(value.clone()),
        origin: origin.clone(),
        ignored: true,
    });
    let mut rows: Vec<_> = settled.chain(ignored).collect();
    rows.sort_by_key(|row| crate::config::KEYS.iter().position(|key| key == row.key));
    super::tell(&sources.notices(&effective, &flags));
    let printed = if json { print_json(&rows) } else { print(&rows) };
    if printed.is_ok() { Exit::Done } else { Exit::Internal }
}

/// A list has a row for each element, since each has an origin of its own.
fn rows(key: &'static Key, value: Option<&Value>, elements: &[Element], origin: &Origin) -> Vec<Row> {
    if elements.is_empty() {
        return vec![Row { key, value: value.cloned(), origin: origin.clone(), ignored: false }];
    }
    let row = |one: &Element| Row {
        key,
        value: Some(Value::List(vec![one.clone()])),
        origin: one.origin.clone(),
        ignored: false,
    };
    elements.iter().map(row).collect()
}

fn print(rows: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let values: Vec<_> = rows.iter().map(shown).collect();
    let widest = values.iter().map(|value| value.chars().count()).max().unwrap_or_default().min(40);
    for (row, value) in rows.iter().zip(values) {
        let Row { key, origin, ignored, .. } = row;
        let note = if *ignored { "  not trusted: does not hold" } else { "" };
        writeln!(out, "{:<25} {value:<widest$}  {origin}{note}", key.name)?;
    }
    out.flush()
}

fn shown(row: &Row) -> String {
    match (&row.value, row.key.preset) {
        (Some(value), _) => value.to_string(),
        (None, Preset::Unset(meaning)) => meaning.to_owned(),
        (None, _) => String::new(),
    }
}

#[derive(Serialize)]
struct JsonRow<'a> {
    key: &'a str,
    value: Json,
    origin: &'a str,
    /// The flag, the variable, or the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignored: bool,
}

fn print_json(rows: &[Row]) -> io::Result<()> {
    let rows: Vec<_> = rows.iter().map(json_row).collect();
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &json!({ "settings": rows }))?;
    writeln!(out)
}

fn json_row(row: &Row) -> JsonRow<'_> {
    let from = match &row.origin {
        Origin::Default => None,
        Origin::User(place) | Origin::Project(place) => Some(place.file.display().to_string()),
        Origin::Flag(name) | Origin::Environment(name) => Some((*name).to_owned()),
    };
    JsonRow {
        key: row.key.name,
        value: row.value.as_ref().map_or(Json::Null, |value| json_value(value, row.key.kind)),
        origin: row.origin.as_str(),
        from,
        line: row.origin.place().map(|place| place.line),
        ignored: row.ignored,
    }
}

fn json_value(value: &Value, kind: Kind) -> Json {
    let word = |word: &std::ffi::OsString| Json::from(word.to_string_lossy());
    match value {
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Switch(on) => json!(on),
        Value::List(elements) => elements
            .iter()
            .map(|element| match kind {
                Kind::Commands => element.words.iter().map(word).collect(),
                _ => element.words.first().map_or(Json::Null, word),
            })
            .collect(),
    }
}
