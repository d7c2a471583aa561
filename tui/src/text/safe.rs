use std::fmt::Write;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::emoji::is_sequence;
use super::hidden::{columns, is_hidden, is_modifier, is_other_space, is_presentation};

const TAB: usize = 4;

/// Maximum number of combining marks on one character. Higher stacks of marks would cover other lines.
const MARKS: usize = 4;

/// Maximum number of columns of a grapheme cluster that is drawn unchanged.
const WIDEST: usize = 4;

/// Maximum length in bytes of an incomplete cluster that later text may continue.
const LONGEST_TAIL: usize = 64;

/// Text from any source, safe to draw: only visible characters and line ends.
///
/// Invisible characters, and those that terminals draw differently, become escapes such as `\u{1b}`, `\u{202e}` or
/// `\xff`. Escapes have a separate style, so that text cannot imitate one.
///
/// [`prose`](Self::prose) is for messages. [`exact`](Self::exact) is for commands and file content: it also escapes
/// unusual spaces, joiners in emoji, and presentation selectors. [`line`](Self::line) escapes line ends, too, so that
/// one name cannot look like two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SafeText {
    text: String,
    escapes: Vec<Range<usize>>,
    manner: Manner,
    column: usize,
    /// Last cluster before its conversion, since text that is appended later may continue it.
    tail: Tail,
}

/// Degree of strictness: the set of characters that are escaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Manner {
    #[default]
    Prose,
    /// Escapes also unusual spaces and presentation selectors.
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
    pub fn prose(untrusted: &str) -> Self {
        Self::made(Manner::Prose, untrusted)
    }

    /// Sanitises a command or file content: every character becomes visible; line ends stay.
    pub fn exact(untrusted: &str) -> Self {
        Self::made(Manner::Exact, untrusted)
    }

    /// Sanitises a name for one line: every character becomes visible, line ends too.
    pub fn line(untrusted: &str) -> Self {
        Self::made(Manner::Line, untrusted)
    }

    /// Sanitises bytes that may not be UTF-8, such as a path, for one line: every byte becomes visible.
    pub fn bytes(untrusted: &[u8]) -> Self {
        let mut text = Self { manner: Manner::Line, ..Self::default() };
        text.push_bytes(untrusted);
        text
    }

    /// Joins words of Bailiwick and a sanitised name, on one line.
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

    /// Returns a part of the text; empty if the range splits a character.
    pub fn slice(&self, range: Range<usize>) -> SafeStr<'_> {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let first = self.escapes.partition_point(|escape| escape.end <= range.start);
        SafeStr { text, escapes: self.escapes.get(first..).unwrap_or_default(), base: range.start }
    }

    /// Appends text. A combining mark at its start joins the last character.
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

    /// Ends the last character: later text, such as a combining mark, does not join it. Frees unused memory.
    pub fn finish(&mut self) {
        self.forget_tail();
        self.text.shrink_to_fit();
    }

    /// Ends the last character: later text does not join it.
    pub fn forget_tail(&mut self) {
        self.tail = Tail::default();
    }

    /// Removes the beginning, up to the end of a line if possible, so that at most `keep` bytes are left.
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

    /// Returns the first position from `from` on at which the text can be cut: after a line, else before an ASCII
    /// character, else after an escape. Never inside an escape.
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

    /// True if the cluster is drawn unchanged: its first character is visible, and all terminals draw it with the same
    /// width. In prose, also true for emoji of several characters.
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

    /// Appends the characters of a cluster one by one, and escapes those that would combine with the character before.
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

/// Returns the number of leading ASCII bytes that are drawn unchanged and do not combine with the next character.
fn plain_ascii(text: &str, lines: bool) -> usize {
    let bytes = text.as_bytes();
    let count =
        bytes.iter().take_while(|byte| matches!(byte, b' '..=b'~') || (lines && **byte == b'\n')).count();
    // A combining mark may follow the last character now or with later text; nothing combines with a line end.
    if count > 0 && bytes.get(count - 1) == Some(&b'\n') { count } else { count.saturating_sub(1) }
}

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

    /// True if the byte belongs to an escape.
    pub fn is_escape(&self, at: usize) -> bool {
        let at = self.base + at;
        let next = self.escapes.partition_point(|escape| escape.end <= at);
        self.escapes.get(next).is_some_and(|escape| escape.contains(&at))
    }
}

/// Converts words of this program's source code, which are safe.
impl From<&'static str> for SafeStr<'static> {
    fn from(text: &'static str) -> Self {
        Self { text, escapes: &[], base: 0 }
    }
}
