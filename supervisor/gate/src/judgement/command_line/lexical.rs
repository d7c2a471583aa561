//! Characters of commands that an approved prefix can cover.

/// Maximum size of a parsed command in bytes.
pub(super) const MAX_LENGTH: usize = 8 * 1024;

/// True for a character that bash takes as itself in an unquoted word, at least in some positions (`~`).
///
/// Only ASCII characters count: the locale decides which other characters separate words.
pub(super) const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '%' | '+' | '=' | '^' | '~')
}

/// True if bash takes an unquoted word as it is. In some positions, bash would expand a `~`.
pub(super) fn is_plain_word(word: &str) -> bool {
    let is_behind = |(before, c): (char, char)| c != '~' || before.is_ascii_alphanumeric() || before == '^';
    // The character before the first one is a blank.
    let pairs = std::iter::once(' ').chain(word.chars()).zip(word.chars());
    !word.is_empty() && word.chars().all(is_plain) && pairs.into_iter().all(is_behind)
}

/// True for a visible character that bash takes as itself between these quotes.
pub(super) fn is_quotable(quote: char, c: char) -> bool {
    is_literal(c) && (quote == '\'' || !matches!(c, '$' | '`' | '\\' | '!'))
}

pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) const fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"')
}

/// True for a character that ends a word: a blank, a line break, or the first of an operator. The characters of
/// redirections are not included.
pub(super) const fn is_delimiter(c: char) -> bool {
    is_blank(c) || matches!(c, '\n' | ';' | '&' | '|')
}

fn is_literal(c: char) -> bool {
    matches!(c, '\n' | '\t' | ' ') || !(c.is_control() || c.is_whitespace() || is_invisible(c))
}

/// True for characters without width, such as joiners and direction marks.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
