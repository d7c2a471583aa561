//! Which characters may stand in a command that a prefix covers: judged before the text reaches the parser.

/// The longest command that is looked at, in bytes.
pub(super) const MAX_LENGTH: usize = 8 * 1024;

/// How many characters of operators it may have: what the parser forgives, it forgives slowly.
const MAX_OPERATORS: usize = 256;

/// Whether the text consists of what a covered command may consist of. The parser never sees anything else: no
/// expansion, no nesting, no comment, no escape.
pub(super) fn is_admissible(text: &str) -> bool {
    let mut quote = None;
    let mut operators = 0;
    text.len() <= MAX_LENGTH
        && text.chars().all(|c| {
            let admissible = match quote {
                None => is_plain(c) || is_blank(c) || is_quote(c) || is_operator(c),
                Some('\'') => is_literal(c),
                Some(_) => is_literal(c) && is_inert(c),
            };
            operators += usize::from(quote.is_none() && is_operator(c));
            quote = quote_behind(quote, c);
            admissible && operators <= MAX_OPERATORS
        })
        && quote.is_none()
}

/// The text with a `;` for each line break that ends a command, and a blank for one that ends none. The parser takes a line
/// break behind a pipeline for a blank: `a | b | c` and `d 2>&1` on the next line are one call of `c` to it.
///
/// Every byte keeps its place. A line break in quotes stays, and so does one behind `<` or `>`, where bash accepts none.
pub(super) fn on_one_line(text: &str) -> String {
    let (mut quote, mut last) = (None, ';');
    let plain = |c, last| match (c, last) {
        ('\n', '<' | '>') => c,
        ('\n', ';' | '&' | '|') => ' ',
        ('\n', _) => ';',
        _ => c,
    };
    let joined = text.chars().map(|c| {
        let c = if quote.is_none() { plain(c, last) } else { c };
        quote = quote_behind(quote, c);
        if !is_blank(c) {
            last = c;
        }
        c
    });
    joined.collect()
}

/// The quote that is open behind a character.
const fn quote_behind(quote: Option<char>, c: char) -> Option<char> {
    match quote {
        None if is_quote(c) => Some(c),
        Some(open) if open == c => None,
        _ => quote,
    }
}

/// A character that means itself in an unquoted word, wherever it stands but for `~`.
///
/// Only ASCII: which other bytes separate words is the locale's business.
pub(super) const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '%' | '+' | '=' | '^' | '~')
}

/// Whether an unquoted word of plain characters is left as it is: no tilde that stands for a directory.
pub(super) fn is_plain_word(word: &str) -> bool {
    let is_behind = |(before, c): (char, char)| c != '~' || before.is_ascii_alphanumeric() || before == '^';
    // The character before the first one is the blank.
    let pairs = std::iter::once(' ').chain(word.chars()).zip(word.chars());
    !word.is_empty() && word.chars().all(is_plain) && pairs.into_iter().all(is_behind)
}

/// Whether a character means itself within double quotes.
pub(super) const fn is_inert(c: char) -> bool {
    !matches!(c, '$' | '`' | '\\' | '!')
}

pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

const fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"')
}

const fn is_operator(c: char) -> bool {
    matches!(c, '\n' | ';' | '&' | '|' | '<' | '>')
}

/// What may stand in quotes: text that a person can see.
fn is_literal(c: char) -> bool {
    matches!(c, '\n' | '\t' | ' ') || !(c.is_control() || c.is_whitespace() || is_invisible(c))
}

/// Joiners, marks of direction and what else has no width.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
