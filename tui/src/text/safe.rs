//! The sanitiser.

use std::fmt::Write;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::emoji::is_sequence;
use super::hidden::{columns, is_hidden, is_modifier, is_other_space, is_presentation};

/// Tabs lead to the next multiple of this.
const TAB: usize = 4;

/// The most marks that are drawn above and below one character: more of them paint over other lines.
const MARKS: usize = 4;

/// The most columns that characters which are drawn as one may take.
const WIDEST: usize = 4;

/// The longest cluster that is kept to be continued by what is pushed next.
const LONGEST_TAIL: usize = 64;

/// Text from anywhere, made safe to draw: it has visible characters and line ends, and nothing else.
///
/// Invisible characters, and those that terminals draw differently, are shown as an escape: `\u{1b}`,
/// `\u{202e}`, `\xff`. Escapes are drawn unlike other text, so that a text that spells one does not pass for
/// one.
///
/// [`prose`](Self::prose) is for texts, [`exact`](Self::exact) for commands and file content: it also escapes
/// spaces that are not the space, joiners within emoji, and presentation selectors, which prose leaves out
/// where they change nothing; [`line`](Self::line) is exact and has one line, so that no name can look like
/// two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SafeText {
    text: String,
    escapes: Vec<Range<usize>>,
    manner: Manner,
    column: usize,
    /// The last cluster as it came: what is pushed next may belong to it.
    tail: Tail,
}

/// Additional characters to escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Manner {
    #[default]
    Prose,
    /// Spaces that are not the space, presentation selectors.
    Exact,
    Line,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tail {
    raw: String,
    at: usize,
    column: usize,
}

impl SafeText {
    /// Text for reading.
    pub fn prose(untrusted: &str) -> Self {
        Self::made(Manner::Prose, untrusted)
    }

    /// Text that runs, or is written: every character shows.
    pub fn exact(untrusted: &str) -> Self {
        Self::made(Manner::Exact, untrusted)
    }

    /// One line, in which every character shows, line ends too: a name.
    pub fn line(untrusted: &str) -> Self {
        Self::made(Manner::Line, untrusted)
    }

    /// Bytes that should be text and need not be, in one line: a path. Every byte shows.
    pub fn bytes(untrusted: &[u8]) -> Self {
        let mut text = Self { manner: Manner::Line, ..Self::default() };
        text.push_bytes(untrusted);
        text
    }

    /// Words of ours, and a name after them that every byte of shows, in one line.
    pub fn labelled(words: &str, name: &[u8]) -> Self {
        let mut text = Self { manner: Manner::Line, ..Self::default() };
        text.push(words);
        text.forget_tail();
        text.push_bytes(name);
        text
    }

    fn made(manner: Manner, untrusted: &str) -> Self {
        let mut text = Self { manner, ..Self::default() };
        text.push(untrusted);
        text.forget_tail();
        text
    }

    fn push_bytes(&mut self, untrusted: &[u8]) {
        for chunk in untrusted.utf8_chunks() {
            self.push(chunk.valid());
            self.forget_tail();
            for byte in chunk.invalid() {
                self.escape(format_args!("\\x{byte:02x}"));
            }
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    pub fn all(&self) -> SafeStr<'_> {
        self.slice(0..self.text.len())
    }

    /// A part of it; empty where the range cuts a character.
    pub fn slice(&self, range: Range<usize>) -> SafeStr<'_> {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let first = self.escapes.partition_point(|escape| escape.end <= range.start);
        SafeStr { text, escapes: self.escapes.get(first..).unwrap_or_default(), base: range.start }
    }

    /// Appends a text, which may continue the last character.
    pub fn push(&mut self, untrusted: &str) {
        let mut tail = std::mem::take(&mut self.tail);
        if tail.raw.is_empty() {
            return self.push_clusters(untrusted);
        }
        self.truncate(tail.at);
        self.column = tail.column;
        tail.raw.push_str(untrusted);
        self.push_clusters(&tail.raw);
    }

    /// Appends text that is safe already.
    pub fn append(&mut self, safe: SafeStr<'_>) {
        self.forget_tail();
        let start = self.text.len();
        let end = safe.base + safe.text.len();
        let within = safe.escapes.iter().take_while(|escape| escape.start < end);
        let moved = within.map(|escape| {
            let from = escape.start.saturating_sub(safe.base);
            start + from..start + escape.end.min(end) - safe.base
        });
        self.escapes.extend(moved);
        self.text.push_str(safe.text);
        let line = self.text.rfind('\n').map_or(0, |end| end + 1);
        self.column = self.text.get(line..).unwrap_or_default().width();
    }

    /// Ends the text: the last character is whole, and spare memory is freed.
    pub fn finish(&mut self) {
        self.forget_tail();
        self.text.shrink_to_fit();
    }

    /// Says that the last character is whole.
    pub fn forget_tail(&mut self) {
        self.tail = Tail::default();
    }

    /// Drops what comes first until at most `keep` bytes are left, by whole lines where there are any.
    pub fn keep_last(&mut self, keep: usize) {
        let from = self.text.len().saturating_sub(keep);
        let cut = self.cut_after(from);
        self.forget_tail();
        self.text.drain(..cut);
        self.escapes.retain_mut(|escape| {
            let kept = escape.start >= cut;
            *escape = escape.start.saturating_sub(cut)..escape.end.saturating_sub(cut);
            kept
        });
    }

    /// Returns the first place from `from` on where the text can be cut: after a line, else before a
    /// character that joins no other, and never in an escape.
    fn cut_after(&self, from: usize) -> usize {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            return from + at + 1;
        }
        let at = rest.iter().position(u8::is_ascii).map_or(self.text.len(), |at| from + at);
        let escape = self.escapes.iter().find(|escape| escape.start < at && at < escape.end);
        escape.map_or(at, |escape| escape.end)
    }

    fn truncate(&mut self, at: usize) {
        self.text.truncate(at);
        while self.escapes.last().is_some_and(|escape| escape.end > at) {
            self.escapes.pop();
        }
    }

    fn push_clusters(&mut self, untrusted: &str) {
        let mut rest = untrusted;
        while !rest.is_empty() {
            let plain = plain_ascii(rest, self.manner != Manner::Line);
            if plain > 0 {
                self.plain(&rest[..plain]);
                rest = &rest[plain..];
                continue;
            }
            let Some(cluster) = rest.graphemes(true).next() else { return };
            rest = &rest[cluster.len()..];
            let (at, column) = (self.text.len(), self.column);
            self.cluster(cluster);
            if rest.is_empty() && cluster.len() <= LONGEST_TAIL && !cluster.ends_with('\n') {
                self.tail = Tail { raw: cluster.to_owned(), at, column };
            }
        }
    }

    fn plain(&mut self, ascii: &str) {
        self.text.push_str(ascii);
        self.column = match ascii.rfind('\n') {
            Some(at) => ascii.len() - at - 1,
            None => self.column + ascii.len(),
        };
    }

    fn cluster(&mut self, cluster: &str) {
        if cluster == "\t" {
            let spaces = TAB - self.column % TAB;
            self.text.extend(std::iter::repeat_n(' ', spaces));
            self.column += spaces;
        } else if self.is_undisputed(cluster) {
            self.text.push_str(cluster);
            self.column += cluster.width();
        } else {
            self.taken_apart(cluster);
        }
    }

    /// True if the cluster is drawn as it is: it begins with something visible and is as wide as its characters, or in prose
    /// it is an emoji of several characters.
    fn is_undisputed(&self, cluster: &str) -> bool {
        if self.manner == Manner::Prose && is_sequence(cluster) {
            return cluster.width() == 2;
        }
        let mut characters = cluster.chars();
        let Some(first) = characters.next() else { return false };
        let marks = characters.as_str().chars().filter(|c| columns(*c) == 0).count();
        self.shows(first)
            && characters.all(|c| !is_hidden(c) && !is_modifier(c))
            && marks <= MARKS
            && cluster.width() <= WIDEST
            && cluster.width() == cluster.chars().map(columns).sum::<usize>()
    }

    fn shows(&self, c: char) -> bool {
        columns(c) > 0
            && !is_hidden(c)
            && !is_modifier(c)
            && (self.manner == Manner::Prose || !is_other_space(c))
    }

    /// Appends character by character: a visible one is kept only where it cannot join the one before it.
    fn taken_apart(&mut self, cluster: &str) {
        let mut joins = false;
        for c in cluster.chars() {
            match c {
                '\n' if self.manner != Manner::Line => {
                    self.text.push('\n');
                    self.column = 0;
                }
                c if !joins && self.shows(c) => {
                    self.text.push(c);
                    self.column += columns(c);
                    joins = true;
                }
                c if joins && self.manner == Manner::Prose && is_presentation(c) => {}
                c => {
                    self.escape(format_args!("{}", c.escape_unicode()));
                    joins = false;
                }
            }
        }
    }

    fn escape(&mut self, escape: std::fmt::Arguments<'_>) {
        let start = self.text.len();
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(escape);
        self.column += self.text.len() - start;
        self.escapes.push(start..self.text.len());
    }
}

/// Number of leading bytes of ASCII that are shown unchanged, and cannot be joined by the next character.
fn plain_ascii(text: &str, lines: bool) -> usize {
    let bytes = text.as_bytes();
    let count =
        bytes.iter().take_while(|byte| matches!(byte, b' '..=b'~') || (lines && **byte == b'\n')).count();
    // The last one may be joined by a mark, now or with what is pushed next; a line end is joined by nothing.
    if count > 0 && bytes.get(count - 1) == Some(&b'\n') { count } else { count.saturating_sub(1) }
}

/// A part of a [`SafeText`], or words of our own.
#[derive(Clone, Copy, Debug)]
pub struct SafeStr<'a> {
    text: &'a str,
    escapes: &'a [Range<usize>],
    base: usize,
}

impl<'a> SafeStr<'a> {
    pub const fn as_str(&self) -> &'a str {
        self.text
    }

    /// True if an escape is at this byte.
    pub fn is_escape(&self, at: usize) -> bool {
        let at = self.base + at;
        let next = self.escapes.partition_point(|escape| escape.end <= at);
        self.escapes.get(next).is_some_and(|escape| escape.contains(&at))
    }
}

/// Words of this program's source.
impl From<&'static str> for SafeStr<'static> {
    fn from(text: &'static str) -> Self {
        Self { text, escapes: &[], base: 0 }
    }
}
