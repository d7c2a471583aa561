//! Grapheme clusters of a text with their widths.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::hidden::columns;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster<'a> {
    pub at: usize,
    pub text: &'a str,
    pub columns: usize,
}

impl Cluster<'_> {
    pub const fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

#[derive(Clone, Debug)]
pub struct Clusters<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Clusters<'a> {
    /// Iterates over the clusters from byte `at` on, which must be the start of a cluster.
    pub const fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }
}

impl<'a> Iterator for Clusters<'a> {
    type Item = Cluster<'a>;

    fn next(&mut self) -> Option<Cluster<'a>> {
        let at = self.at;
        let bytes = self.text.as_bytes();
        if let (Some(b' '..=b'~'), None | Some(b' '..=b'~' | b'\n')) = (bytes.get(at), bytes.get(at + 1)) {
            self.at = at + 1;
            return Some(Cluster { at, text: self.text.get(at..=at)?, columns: 1 });
        }
        let rest = self.text.get(at..)?;
        let mut characters = rest.chars();
        let first = characters.next()?;
        let alone = first == '\n' || (stands_alone(first) && characters.next().is_none_or(stands_alone));
        let (text, columns) = if alone {
            (rest.get(..first.len_utf8())?, columns(first))
        } else {
            let cluster = rest.graphemes(true).next()?;
            (cluster, cluster.width())
        };
        self.at = at + text.len();
        Some(Cluster { at, text, columns })
    }
}

/// True if a character never combines with another one. Covers the characters of most texts without a table lookup.
const fn stands_alone(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{2ff}' | '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{27bf}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}')
}
