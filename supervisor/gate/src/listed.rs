//! Lists of places that are kept as data: one place a line, and behind ` # ` the reason why it is listed.
//!
//! A line `[NAME]` begins a section, a line that begins with `#` is a remark. A `*` in a place stands for any characters
//! of one name.

/// One line of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The section that the line stands in; empty before the first.
    pub section: &'static str,
    /// The place.
    pub place: &'static str,
}

/// The places of a list, in order.
pub fn places(list: &'static str) -> impl Iterator<Item = Listed> {
    let mut section = "";
    list.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        }
        let (place, _reason) = split(line)?;
        Some(Listed { section, place })
    })
}

/// A place and its reason; absent for remarks and sections.
fn split(line: &str) -> Option<(&str, &str)> {
    let (place, reason) = line.split_once(" # ").filter(|_| !line.starts_with('#'))?;
    Some((place.trim_end(), reason))
}

/// True if a name is one that the pattern stands for.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let Some((first, rest)) = cut(pattern) else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut rest = rest;
    while let Some((middle, behind)) = cut(rest) {
        let Some(at) = memchr::memmem::find(name, middle) else { return false };
        name = name.get(at + middle.len()..).unwrap_or_default();
        rest = behind;
    }
    name.ends_with(rest)
}

fn cut(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = pattern.iter().position(|byte| *byte == b'*')?;
    Some((pattern.get(..at)?, pattern.get(at + 1..)?))
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;
    use std::path::{Component, Path};

    use super::*;

    /// Checks the form of a list: each line is a remark, a section, or a place with its reason, and no place stands twice.
    pub fn check(list: &'static str) {
        let is_section = |line: &str| line.starts_with('[') && line.ends_with(']');
        let mut seen = BTreeSet::new();
        for line in
            list.lines().filter(|line| !line.is_empty() && !line.starts_with('#') && !is_section(line))
        {
            let (place, reason) = split(line).unwrap_or_else(|| panic!("no reason: {line:?}"));
            assert!(reason.split_whitespace().count() > 1 && reason.trim() == reason, "no reason: {line:?}");
            assert!(line.chars().count() <= 140 && line.is_ascii(), "too long, or not ASCII: {line:?}");
            let path = Path::new(place.strip_prefix('!').unwrap_or(place));
            let is_plain =
                path.components().all(|step| matches!(step, Component::Normal(_) | Component::RootDir));
            assert!(is_plain && path.components().as_path().as_os_str() == path, "no plain path: {line:?}");
            assert!(seen.insert(place), "listed twice: {line:?}");
        }
        assert_eq!(places(list).count(), seen.len());
        for place in &seen {
            let above = Path::new(place).ancestors().skip(1).filter_map(Path::to_str);
            assert!(
                !above.into_iter().any(|above| seen.contains(above)),
                "{place} lies in another place of the list"
            );
        }
    }

    #[test]
    fn a_line_is_a_place_with_its_reason_in_a_section() {
        const LIST: &str = "# A remark # of two\na # one reason\n[two]\nb c   # its reason # and more\n\n";
        let found: Vec<_> = places(LIST).map(|Listed { section, place }| (section, place)).collect();
        assert_eq!(found, [("", "a"), ("two", "b c")]);
    }

    #[test]
    fn a_star_stands_for_any_characters_of_a_name() {
        let is = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes());
        for (pattern, name) in [
            ("a", "a"),
            ("*", ""),
            ("*", "abc"),
            ("*.code-workspace", "x.code-workspace"),
            ("mise.*.toml", "mise.a.b.toml"),
            ("a*", "a"),
            ("*b*d*", "abcd"),
            ("*aa", "aaa"),
        ] {
            assert!(is(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a", "ab"),
            ("mise.*.toml", "mise.toml"),
            ("*.x", "x"),
            ("a*a", "a"),
            ("*b*d*", "dbc"),
            ("a*b*b", "ab"),
        ] {
            assert!(!is(pattern, name), "{pattern} {name}");
        }
    }
}
