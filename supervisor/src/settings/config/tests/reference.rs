//! Tests that docs/configuration.md agrees with the table of keys.

use model::provider::catalogue::{Entry, FIELDS, Facts, Field};

use crate::settings::config::{KEYS, Key};

fn row(key: &Key) -> String {
    let (expected, preset, may) = (key.expected(), key.default(), key.in_a_project());
    format!("| `{}` | {expected} | {preset} | {may} | {} |", key.name, key.about)
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

fn rows<'a>(reference: &'a str, section: &str) -> Vec<&'a str> {
    let (_, rest) = reference.split_once(&format!("\n{section}\n")).unwrap();
    let section = rest.split_once("\n## ").map_or(rest, |(section, _)| section);
    section.lines().filter(|line| line.starts_with("| `")).collect()
}
