use std::ops::Range;

use super::{SafeStr, SafeText, Tone};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub range: Range<usize>,
    pub tone: Tone,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Styled {
    text: SafeText,
    /// Ranges with a style, in order and without overlaps; the rest of the text is plain.
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

    /// Appends text in a style. A combining mark does not join a character of another style.
    pub fn push_in(&mut self, untrusted: &str, tone: Tone) {
        let before = self.text.len();
        let last = self.spans.last().filter(|span| span.range.end == before).map(|span| span.tone);
        if last.unwrap_or_default() != tone {
            self.text.forget_tail();
        }
        self.text.push(untrusted);
        // The appended text may have changed the last character.
        let after = self.text.len();
        if let Some(span) = self.spans.last_mut() {
            span.range.end = span.range.end.min(after);
        }
        self.add(before.min(after)..after, tone);
    }

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

    /// Appends the rest of `longer` if it starts with this text. Returns false if it does not.
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

    /// Adds a style to a byte range after the last styled range.
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

    /// Ends the last character: later text does not join it. Frees unused memory.
    pub fn finish(&mut self) {
        self.text.finish();
        self.spans.shrink_to_fit();
    }

    /// Removes the beginning, so that at most `keep` bytes are left.
    pub fn keep_last(&mut self, keep: usize) {
        let before = self.text.len();
        self.text.keep_last(keep);
        let cut = before - self.text.len();
        self.spans.retain_mut(|Span { range, .. }| {
            *range = range.start.saturating_sub(cut)..range.end.saturating_sub(cut);
            range.start < range.end
        });
    }

    /// Divides a range into pieces of one style each.
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
