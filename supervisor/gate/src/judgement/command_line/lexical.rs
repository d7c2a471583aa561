//! The characters that may stand in a command that a prefix covers.

/// The longest command that is looked at, in bytes.
pub(super) const MAX_LENGTH: usize = 8 * 1024;

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

/// True if a character means itself between these quotes, and a person can see it.
pub(super) fn is_quotable(quote: char, c: char) -> bool {
    is_literal(c) && (quote == '\'' || !matches!(c, '$' | '`' | '\\' | '!'))
}

pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) const fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"')
}

/// True for a character that ends a word: a blank, a line break, and what begins an operator. Of redirections nothing is said
/// here: they stand apart.
pub(super) const fn is_delimiter(c: char) -> bool {
    is_blank(c) || matches!(c, '\n' | ';' | '&' | '|')
}

fn is_literal(c: char) -> bool {
    matches!(c, '\n' | '\t' | ' ') || !(c.is_control() || c.is_whitespace() || is_invisible(c))
}

/// Joiners, marks of direction and what else has no width.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
