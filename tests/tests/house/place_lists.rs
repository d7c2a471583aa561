//! Tests the lists of paths: each line is a comment, a section or a path with a reason, and no path appears twice.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

const LISTS: [&str; 2] =
    ["supervisor/boundary/src/policy/hidden.txt", "supervisor/gate/src/protected/settings.txt"];

const MOST_CHARACTERS: usize = 140;

fn list(name: &str) -> String {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// Returns the path and the reason in a line. `None` unless the reason has at least two words.
fn split(line: &str) -> Option<(&str, &str)> {
    let (place, reason) = line.split_once(" # ")?;
    let is_reason = reason.split_whitespace().count() > 1 && reason.trim() == reason;
    is_reason.then_some((place.trim_end(), reason))
}

fn is_plain(place: &str) -> bool {
    let path = Path::new(place.strip_prefix('!').unwrap_or(place));
    let is_plain = |step| matches!(step, Component::Normal(_) | Component::RootDir);
    path.components().all(is_plain)
        && !place.contains("//")
        && !place.ends_with('/')
        && !place.contains("/./")
}

#[test]
fn each_place_has_one_line_and_a_reason() {
    for name in LISTS {
        let text = list(name);
        let is_section = |line: &str| line.starts_with('[') && line.ends_with(']');
        let lines =
            text.lines().filter(|line| !line.is_empty() && !line.starts_with('#') && !is_section(line));
        let mut seen = BTreeSet::new();
        for line in lines {
            let (place, _) = split(line).unwrap_or_else(|| panic!("{name} has no reason: {line:?}"));
            let is_short = line.chars().count() <= MOST_CHARACTERS && line.is_ascii();
            assert!(is_short, "{name} has a line that is too long, or not ASCII: {line:?}");
            assert!(is_plain(place), "{name} has no plain path: {line:?}");
            assert!(seen.insert(place), "{name} lists it twice: {line:?}");
        }
        assert!(seen.len() > 20, "{name} has only {} places", seen.len());
        for place in &seen {
            let mut above = Path::new(place).ancestors().skip(1).filter_map(Path::to_str);
            assert!(!above.any(|above| seen.contains(above)), "{name}: {place} lies in another place");
        }
    }
}

#[test]
fn what_is_no_line_of_a_list_is_found() {
    assert_eq!(split("a # one reason"), Some(("a", "one reason")));
    assert_eq!(split("b c   # its reason # and more"), Some(("b c", "its reason # and more")));
    for line in ["a", "a #", "a # short", "a #  two words"] {
        assert_eq!(split(line), None, "{line}");
    }
    for place in ["a/../b", "a//b", "./a", "a/"] {
        assert!(!is_plain(place), "{place}");
    }
}
