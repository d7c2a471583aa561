//! Tests that functions have separate parameters: no parameter is a tuple, except for common pairs.

use crate::prose::sources;

/// Patterns of pairs that may be parameters.
const PAIRS: [(&str, &str); 4] = [
    ("(x, y)", "a cell of the screen"),
    ("(width, height)", "the size of a screen or of a picture"),
    ("size", "the width and the height of a screen"),
    ("sixteen", "the colours of a text and of its background, of the sixteen of a terminal"),
];

struct Parameter<'a> {
    pattern: &'a str,
    kind: &'a str,
}

impl Parameter<'_> {
    fn is_tuple(&self) -> bool {
        let kind = self.kind.trim_start_matches('&').trim_start();
        let kind =
            if kind.starts_with('\'') { kind.split_once(' ').map_or("", |(_, rest)| rest) } else { kind };
        let kind = kind.trim_start_matches("mut ");
        // `&(dyn Any + Send)` has parentheses, and is no tuple.
        self.pattern.starts_with('(')
            || kind.strip_prefix('(').is_some_and(|inner| parts(inner).is_some_and(|parts| parts.len() > 1))
    }

    fn is_pair(&self) -> bool {
        let pattern = self.pattern.replace("mut ", "");
        PAIRS.iter().any(|(known, _)| *known == pattern)
    }
}

/// Splits the text after an opening bracket at its commas, up to the closing bracket. `None` if that is missing.
fn parts(inner: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut depth, mut before) = (Vec::new(), 0, 0, ' ');
    for (at, c) in inner.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if "-=".contains(before) => {}
            ')' | ']' | '}' | '>' if depth == 0 => {
                parts.push(inner[from..at].trim());
                parts.retain(|part| !part.is_empty());
                return Some(parts);
            }
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(inner[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    None
}

/// Returns the functions of a source by name, each with its parameters except `self`.
fn functions(code: &str) -> Vec<(&str, Vec<Parameter<'_>>)> {
    let starts = code.match_indices("fn ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        before.is_none_or(char::is_whitespace)
    });
    let read = |(at, word): (usize, &str)| {
        let rest = &code[at + word.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let (name, mut rest) = rest.split_at(end);
        if let Some(generics) = rest.strip_prefix('<') {
            let last = *parts(generics)?.last()?;
            let length = last.as_ptr() as usize - generics.as_ptr() as usize + last.len();
            rest = generics.get(length..)?.split_once('>')?.1;
        }
        let list = parts(rest.strip_prefix('(')?)?;
        let parameter = |text| split(text).map(|(pattern, kind)| Parameter { pattern, kind });
        Some((name, list.into_iter().filter_map(parameter).collect()))
    };
    starts.filter_map(read).collect()
}

/// Splits a parameter into its pattern and its type. `None` if it has no type.
fn split(parameter: &str) -> Option<(&str, &str)> {
    let colons = parameter.match_indices(':');
    let mut single =
        colons.filter(|(at, _)| !parameter[at + 1..].starts_with(':') && !parameter[..*at].ends_with(':'));
    let (at, _) = single.next()?;
    Some((parameter[..at].trim(), parameter[at + 1..].trim()))
}

#[test]
fn no_parameter_is_a_tuple() {
    let sources = sources();
    let all: Vec<_> = sources
        .iter()
        .flat_map(|(path, code)| functions(code).into_iter().map(move |(name, list)| (path, name, list)))
        .collect();
    assert!(all.len() > 8000, "{} functions", all.len());
    let tuples = |list: &[Parameter<'_>]| {
        let tuple = list.iter().find(|one| one.is_tuple() && !one.is_pair());
        tuple.map(|one| format!("{}: {}", one.pattern, one.kind))
    };
    let found = all.iter().filter_map(|(path, name, list)| Some(format!("{path}: {name} {}", tuples(list)?)));
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "arguments of their own, or a struct:\n{}", found.join("\n"));
    for (pair, reason) in PAIRS {
        let is_used =
            all.iter().flat_map(|(_, _, list)| list).any(|one| one.is_tuple() && one.pattern == pair);
        assert!(is_used, "no function takes {pair}, {reason}");
    }
}

#[test]
fn a_parameter_that_is_a_tuple_is_found() {
    let tuples = |code: &str| {
        let [(_, list)] = &functions(code)[..] else { return Vec::new() };
        list.iter().filter(|one| one.is_tuple()).map(|one| one.pattern.to_owned()).collect::<Vec<_>>()
    };
    for (code, pattern) in [
        ("fn deny(&mut self, call: CallId, (id, by): (Id, By), cause: &str) {", "(id, by)"),
        ("pub(super) fn of(\n    seen: (u64, By),\n) -> Self {", "seen"),
        ("fn of<T: Fn(u8) -> u8, U>(a: T, seen: &'a mut (u64, By)) {", "seen"),
        ("const fn pair(exact: (Color, Color)) -> Pair {", "exact"),
    ] {
        assert_eq!(tuples(code), [pattern], "{code}");
    }
    for code in [
        "fn panicked(panic: &(dyn Any + Send)) -> String {",
        "fn done(result: Result<(), Error>, pairs: &[(u8, u8)]) {",
        "fn each(visit: impl Fn((u8, u8)) -> (u8, u8), unit: ()) {",
        "fn named(Pair { left, right }: Pair, path: crate::Path) {",
    ] {
        assert_eq!(functions(code).len(), 1, "{code}");
        assert!(tuples(code).is_empty(), "{code}");
    }
}
