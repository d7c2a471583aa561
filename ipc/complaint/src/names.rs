//! Names in a line of text: between quotes, and as words.

/// Pairs of quotes around a name.
const QUOTES: [(char, char); 6] = [('\'', '\''), ('"', '"'), ('`', '`'), ('`', '\''), ('‘', '’'), ('“', '”')];

/// Returns the texts between quotes of any kind.
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

/// Splits at the next quote that opens: not the apostrophe of a word.
fn opened(text: &str, open: char) -> Option<(&str, &str)> {
    let is_opening =
        |(at, _): &(usize, &str)| open != '\'' || !text[..*at].ends_with(|c: char| c.is_alphanumeric());
    let (at, quote) = text.match_indices(open).find(is_opening)?;
    Some((&text[..at], &text[at + quote.len()..]))
}

/// Returns the line in lower case without its quoted texts; all of it would match a name of one letter in
/// every word.
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

/// The path of a segment between colons, if it begins as one. `open /etc/x`: its last word, unless spaces belong to it.
pub(super) fn path_in(segment: &str) -> Option<&str> {
    let segment = segment.trim().trim_end_matches([':', '(', ',']).trim_end();
    let last = segment.rsplit_once(' ').map(|(_, word)| word);
    [Some(segment), last]
        .into_iter()
        .flatten()
        .find(|path| ["/", "./", "../"].iter().any(|start| path.starts_with(start)))
}

/// The relative name just before the words of a refusal: `tool: name: Permission denied`; not an error's own, as in
/// `Error: EACCES: permission denied`.
pub(super) fn name_in(segment: &str) -> Option<&str> {
    let name = segment.trim_end().trim_end_matches(':');
    let is_code = name.starts_with('E') && name.bytes().all(|byte| byte.is_ascii_uppercase());
    (!name.contains([' ', '[', '(']) && !is_code).then_some(name)
}

/// The path of a redirection that dash was refused, blanks included: `sh: 1: cannot create /srv/a b`. After a number, so that
/// bash's `line 1: cannot create temp file for here-document` names none.
pub(super) fn redirected(before: &str) -> Option<&str> {
    let before = before.trim_end();
    let before = before.strip_suffix(':').unwrap_or(before);
    let mut segments = before.splitn(3, ": ").skip(1);
    let number = segments.next()?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let message = segments.next().filter(|_| is_number)?;
    ["cannot create ", "cannot open "].iter().find_map(|act| message.strip_prefix(act))
}
