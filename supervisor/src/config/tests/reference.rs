//! docs/configuration.md says what the table of keys says.

use crate::config::{KEYS, Key, Kind, Preset, ProjectMay};
use crate::provider::catalogue::{Entry, FIELDS, Facts, Field};

/// One row of the reference.
fn row(key: &Key) -> String {
    let Key { name, kind, project, preset, about } = key;
    let words = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let kind = match kind {
        Kind::Text => "text".to_owned(),
        Kind::Address => "address".to_owned(),
        Kind::Choice([choice]) => format!("`{choice}`"),
        Kind::Choice(choices) => format!("one of {}", words(choices)),
        Kind::Choices(choices) => format!("list out of {}", words(choices)),
        Kind::Paths => "list of paths".to_owned(),
        Kind::Variables => "list of `NAME` or `NAME=VALUE`".to_owned(),
        Kind::Commands => "list of lists of words".to_owned(),
        Kind::Names => "list of names".to_owned(),
        Kind::Count { least, most } => format!("number, {least} to {most}"),
        Kind::Time => "number, 0.001 to 31536000".to_owned(),
        Kind::Amount => "US dollars".to_owned(),
        Kind::Switch => "`true` or `false`".to_owned(),
    };
    let preset = match preset {
        Preset::Word(word) => format!("`{word}`"),
        Preset::Number(number) => format!("`{number}`"),
        Preset::Off => "`false`".to_owned(),
        Preset::Empty => "empty".to_owned(),
        Preset::Unset(meaning) => (*meaning).to_owned(),
    };
    let project = match project {
        ProjectMay::Narrow => "adds to it",
        ProjectMay::Lower if matches!(key.kind, Kind::Choice([_])) => "narrows it",
        ProjectMay::Lower => "narrows it; widens it if trusted",
        ProjectMay::IfTrusted => "if trusted",
        ProjectMay::Never => "never",
    };
    format!("| `{name}` | {kind} | {preset} | {project} | {about} |")
}

#[test]
fn the_reference_has_every_key_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let reference = std::fs::read_to_string(path).unwrap();
    let expected: Vec<_> = KEYS.iter().map(row).collect();
    assert_eq!(
        rows(&reference, "## Keys"),
        expected,
        "docs/configuration.md should have:\n{}",
        expected.join("\n")
    );
}

#[test]
fn the_reference_has_every_fact_of_a_model_and_its_default() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let reference = std::fs::read_to_string(path).unwrap();
    let preset = Entry::from(Facts::default());
    let row = |field: &Field| {
        let Field { name, expected, about, shown, .. } = field;
        let preset = shown(&preset).unwrap_or_else(|| "unknown".to_owned());
        format!("| `{name}` | {expected} | {preset} | {about} |")
    };
    let expected: Vec<_> = FIELDS.iter().map(row).collect();
    assert_eq!(
        rows(&reference, "## Models"),
        expected,
        "docs/configuration.md should have:\n{}",
        expected.join("\n")
    );
}

/// The rows of the table in a section.
fn rows<'a>(reference: &'a str, section: &str) -> Vec<&'a str> {
    let (_, rest) = reference.split_once(&format!("\n{section}\n")).unwrap();
    let section = rest.split_once("\n## ").map_or(rest, |(section, _)| section);
    section.lines().filter(|line| line.starts_with("| `")).collect()
}
