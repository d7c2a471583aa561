//! Sequences of characters that form one emoji: people, flags, skin tones, keycaps.
//!
//! Joiners and selectors are invisible alone. Terminals draw such sequences with different widths (see
//! [`is_disputed`]).

use unicode_segmentation::UnicodeSegmentation;

use super::hidden::{columns, is_hidden, is_modifier};

const JOINER: char = '\u{200d}';
const EMOJI: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';

/// Maximum number of emoji in one sequence: a family of four.
const JOINED: usize = 4;

/// Flags that consist of tag characters: England, Scotland, Wales. Other tags could contain a hidden message.
const TAGGED: [&str; 3] = [
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// True if terminals may draw the cluster as one emoji of two columns.
pub(super) fn is_sequence(cluster: &str) -> bool {
    is_keycap(cluster) || TAGGED.contains(&cluster) || is_joined(cluster)
}

/// True if terminals disagree about the width of the cluster.
pub fn is_disputed(cluster: &str) -> bool {
    let mut characters = cluster.chars();
    let first = characters.next();
    // A regional indicator is a letter alone, and a flag together with another one.
    first.is_some_and(|c| matches!(c, '\u{1f1e6}'..='\u{1f1ff}'))
        || characters.any(|c| matches!(c, JOINER | EMOJI) || is_modifier(c))
        || TAGGED.contains(&cluster)
        // Many terminals draw spacing marks and joining letters in separate cells.
        || cluster.chars().filter(|c| columns(*c) > 0).count() > 1
}

/// Returns the start of the last cluster if later text may continue it; else the end of the text.
pub fn open_cluster(text: &str) -> usize {
    let last = text.grapheme_indices(true).next_back();
    last.filter(|(_, cluster)| !cluster.is_ascii()).map_or(text.len(), |(at, _)| at)
}

fn is_keycap(cluster: &str) -> bool {
    let mut characters = cluster.chars();
    matches!(characters.next(), Some('0'..='9' | '#' | '*'))
        && characters.next() == Some(EMOJI)
        && characters.next() == Some(KEYCAP)
        && characters.next().is_none()
}

/// True for an emoji with a selector or a skin tone, and for up to [`JOINED`] emoji with joiners between them.
fn is_joined(cluster: &str) -> bool {
    let elements: Vec<&str> = cluster.split(JOINER).collect();
    let is_sequence = elements.len() > 1 || cluster.chars().nth(1).is_some();
    is_sequence && elements.len() <= JOINED && elements.iter().all(|element| is_element(element))
}

/// True for an emoji with at most one selector or skin tone.
fn is_element(element: &str) -> bool {
    let mut characters = element.chars();
    let Some(first) = characters.next() else { return false };
    let next = characters.next();
    let base = is_pictograph(first) && columns(first) > 0 && !is_hidden(first) && !is_modifier(first);
    base && next.is_none_or(|c| c == EMOJI || is_modifier(c)) && characters.next().is_none()
}

/// True for characters in Unicode's blocks of pictographs.
const fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}'..='\u{2935}' | '\u{2b00}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}
