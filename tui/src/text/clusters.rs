//! Text by grapheme clusters, each with the columns that it takes.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// One grapheme cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster<'a> {
    /// Where it begins, in bytes.
    pub at: usize,
    /// The cluster.
    pub text: &'a str,
    /// Its columns.
    pub columns: usize,
}

impl Cluster<'_> {
    /// Where it ends, in bytes.
    pub const fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// The grapheme clusters of a text; ASCII, of which most text is, costs little.
#[derive(Clone, Debug)]
pub struct Clusters<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Clusters<'a> {
    /// The clusters from `at` on, which is where one begins.
    pub const fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }
}

impl<'a> Iterator for Clusters<'a> {
    type Item = Cluster<'a>;

    fn next(&mut self) -> Option<Cluster<'a>> {
        let at = self.at;
        let bytes = self.text.as_bytes();
        let first = *bytes.get(at)?;
        let followed = bytes.get(at + 1).is_some_and(|next| !next.is_ascii() || *next == b'\n');
        let (text, columns) = if first.is_ascii() && !(followed && first != b'\n') {
            (self.text.get(at..=at)?, usize::from(first != b'\n'))
        } else {
            let cluster = self.text.get(at..)?.graphemes(true).next()?;
            (cluster, if cluster == "\n" { 0 } else { cluster.width() })
        };
        self.at = at + text.len();
        Some(Cluster { at, text, columns })
    }
}
