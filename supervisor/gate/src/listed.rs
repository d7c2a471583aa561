//! Parser of path lists: one path per line, and the reason after ` # `.
//!
//! A line `[NAME]` starts a section; a line that starts with `#` is a comment. A `*` in a path matches any characters
//! of one name.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the section; empty before the first one.
    pub section: &'static str,
    pub place: &'static str,
}

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

/// Splits a line into path and reason. `None` for comments and section names.
fn split(line: &str) -> Option<(&str, &str)> {
    let (place, reason) = line.split_once(" # ").filter(|_| !line.starts_with('#'))?;
    Some((place.trim_end(), reason))
}

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
mod tests {
    use super::*;

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
