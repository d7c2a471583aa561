//! File names in a line of text, in quotes or as words.

const QUOTES: [(char, char); 6] = [('\'', '\''), ('"', '"'), ('`', '`'), ('`', '\''), ('‘', '’'), ('“', '”')];

pub(super) fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (open, close) in QUOTES {
        let mut rest = line;
        while let Some((_, after)) = opened(rest, open) {
            let Some((inner, tail)) = after.split_once(close) else {
                break;
            };
            found.push(inner);
            rest = tail;
        }
    }
    found
}

fn opened(text: &str, open: char) -> Option<(&str, &str)> {
    let is_opening =
        |(at, _): &(usize, &str)| open != '\'' || !text[..*at].ends_with(|c: char| c.is_alphanumeric());
    let (at, quote) = text.match_indices(open).find(is_opening)?;
    Some((&text[..at], &text[at + quote.len()..]))
}

/// Returns `lower`, the line in lower case, without the quoted texts and their quotes.
pub(super) fn without_quoted(line: &str, lower: &str) -> String {
    let mut words = lower.to_owned();
    for name in quoted(line) {
        let name = name.to_ascii_lowercase();
        for (open, close) in QUOTES {
            words = words.replace(&format!("{open}{name}{close}"), "");
        }
    }
    words
}

/// Returns the path in a segment between colons: the whole segment with spaces, or its last word, as in `open /etc/x`.
pub(super) fn path_in(segment: &str) -> Option<&str> {
    let segment = segment.trim().trim_end_matches([':', '(', ',']).trim_end();
    let last = segment.rsplit_once(' ').map(|(_, word)| word);
    [Some(segment), last]
        .into_iter()
        .flatten()
        .find(|path| ["/", "./", "../"].iter().any(|start| path.starts_with(start)))
}

/// Returns the relative name in a segment between colons, as in `tool: name: Permission denied`. `None` for an error
/// code, as in `Error: EACCES: permission denied`.
pub(super) fn name_in(segment: &str) -> Option<&str> {
    let name = segment.trim_end().trim_end_matches(':');
    let is_code = name.starts_with('E') && name.bytes().all(|byte| byte.is_ascii_uppercase());
    (!name.contains([' ', '[', '(']) && !is_code).then_some(name)
}

/// Returns the path (spaces included) of a redirection that dash could not open, as in `sh: 1: cannot create /srv/a b`.
/// dash prints a bare line number, unlike bash in `line 1: cannot create temp file for here-document`.
pub(super) fn redirected(before: &str) -> Option<&str> {
    let before = before.trim_end();
    let before = before.strip_suffix(':').unwrap_or(before);
    let mut segments = before.splitn(3, ": ").skip(1);
    let number = segments.next()?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let message = segments.next().filter(|_| is_number)?;
    ["cannot create ", "cannot open "].iter().find_map(|act| message.strip_prefix(act))
}
