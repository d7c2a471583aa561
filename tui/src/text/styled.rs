//! Safe text with tones: spans of it that look otherwise than the rest.

use std::ops::Range;

use super::{SafeStr, SafeText, Tone};

/// A stretch of a text with its tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub range: Range<usize>,
    pub tone: Tone,
}

/// Safe text with tones; text in no span has the plain one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Styled {
    text: SafeText,
    /// In order, without overlaps.
    spans: Vec<Span>,
}

impl From<SafeText> for Styled {
    fn from(text: SafeText) -> Self {
        Self { text, spans: Vec::new() }
    }
}

impl Styled {
    pub const fn text(&self) -> &SafeText {
        &self.text
    }

    /// Appends text in a tone. A mark joins no character of another tone.
    pub fn push_in(&mut self, untrusted: &str, tone: Tone) {
        let before = self.text.len();
        let last = self.spans.last().filter(|span| span.range.end == before).map(|span| span.tone);
        if last.unwrap_or_default() != tone {
            self.text.forget_tail();
        }
        self.text.push(untrusted);
        // The last character may have become another one, together with what came.
        let after = self.text.len();
        if let Some(span) = self.spans.last_mut() {
            span.range.end = span.range.end.min(after);
        }
        self.add(before.min(after)..after, tone);
    }

    /// Appends text that is safe already.
    pub fn append(&mut self, safe: SafeStr<'_>, tone: Tone) {
        let start = self.text.len();
        self.text.append(safe);
        self.add(start..self.text.len(), tone);
    }

    pub fn append_all(&mut self, other: &Self, range: Range<usize>) {
        for (range, tone) in other.pieces(range) {
            self.append(other.text.slice(range), tone);
        }
    }

    /// Appends the rest of a text that begins with all of this one, in the same tones; returns true if it
    /// does.
    pub fn goes_on_as(&mut self, longer: &Self) -> bool {
        let len = self.text.len();
        if !longer.text.as_str().starts_with(self.text.as_str()) {
            return false;
        }
        for (range, tone) in longer.pieces(len..longer.text.len()) {
            self.append(longer.text.slice(range), tone);
        }
        true
    }

    /// Gives bytes after all spans a tone.
    pub fn add(&mut self, range: Range<usize>, tone: Tone) {
        if range.start >= range.end || tone == Tone::default() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.range.end == range.start && last.tone == tone => last.range.end = range.end,
            Some(last) if last.range.end > range.start => {}
            _ => self.spans.push(Span { range, tone }),
        }
    }

    /// Ends the text: the last character is whole, and spare memory is freed.
    pub fn finish(&mut self) {
        self.text.finish();
        self.spans.shrink_to_fit();
    }

    /// Drops what comes first until at most `keep` bytes are left.
    pub fn keep_last(&mut self, keep: usize) {
        let before = self.text.len();
        self.text.keep_last(keep);
        let cut = before - self.text.len();
        self.spans.retain_mut(|Span { range, .. }| {
            *range = range.start.saturating_sub(cut)..range.end.saturating_sub(cut);
            range.start < range.end
        });
    }

    /// The pieces of a part of it, each in one tone.
    pub fn pieces(&self, range: Range<usize>) -> Vec<(Range<usize>, Tone)> {
        let first = self.spans.partition_point(|span| span.range.end <= range.start);
        let mut pieces = Vec::new();
        let mut at = range.start;
        for span in self.spans.iter().skip(first).take_while(|span| span.range.start < range.end) {
            if span.range.start > at {
                pieces.push((at..span.range.start, Tone::default()));
            }
            let end = span.range.end.min(range.end);
            pieces.push((span.range.start.max(at)..end, span.tone));
            at = end;
        }
        if at < range.end {
            pieces.push((at..range.end, Tone::default()));
        }
        pieces
    }
}
