//! Streamed Markdown, split into finished pieces.
//!
//! A top-level block, or an item of a top-level list, is finished when the next one starts: no later line can change
//! it. Each piece is parsed alone, with the link [`Definitions`] before it. The cuts depend on the text alone, not on
//! the fragments in which it was streamed.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::OPTIONS;
use super::definitions::Definitions;
use super::render::defined;

/// Maximum number of unfinished bytes, which are parsed again with each fragment. A longer block is finished early.
pub(super) const WINDOW: usize = 8 << 10;

#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    all: String,
    /// Number of bytes at the beginning of `all` that belong to finished pieces.
    start: usize,
    head: String,
    /// Number of the list item with which the unfinished text starts; `None` unless it continues a numbered list.
    number: Option<u64>,
    /// True if an empty line precedes the unfinished text.
    is_apart: bool,
    has_begun: bool,
    /// Link definitions before the unfinished text.
    definitions: Definitions,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Markdown of the piece. A piece that continues a split block begins with a copy of its code fence or table
    /// header.
    pub text: String,
    /// True if the text begins with such a copy, which must not be shown again.
    pub is_continued: bool,
    /// Number of the first list item; `None` unless the piece continues a numbered list.
    pub number: Option<u64>,
    pub is_apart: bool,
    pub definitions: Definitions,
}

struct BlockStart {
    at: usize,
    /// First number of the list, and index of the item; `None` outside of a list.
    item: Option<(Option<u64>, u64)>,
}

impl Source {
    pub(crate) fn push(&mut self, text: &str) {
        self.all.push_str(text);
    }

    /// Removes the finished pieces and returns them.
    pub(crate) fn finished(&mut self) -> Vec<Piece> {
        let mut finished = Vec::new();
        while self.finish(&mut finished) {}
        self.all.drain(..std::mem::take(&mut self.start));
        finished
    }

    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn open(&self) -> Option<Piece> {
        (!self.rest().trim().is_empty()).then(|| self.piece(0..self.rest().len()))
    }

    fn rest(&self) -> &str {
        self.all.get(self.start..).unwrap_or_default()
    }

    const fn is_apart(&self) -> bool {
        self.is_apart || !self.has_begun
    }

    fn piece(&self, range: Range<usize>) -> Piece {
        Piece {
            text: [self.head.as_str(), self.rest().get(range).unwrap_or_default()].concat(),
            is_continued: !self.head.is_empty(),
            number: self.number,
            is_apart: self.is_apart(),
            definitions: self.definitions.clone(),
        }
    }

    /// Finishes the first block of the unfinished text. False if that block is still incomplete.
    fn finish(&mut self, finished: &mut Vec<Piece>) -> bool {
        let windows = [WINDOW / 32, WINDOW / 8, WINDOW].map(|most| self.window(most));
        let next = windows.iter().filter(|window| **window > 0).find_map(|window| {
            let text = [self.head.as_str(), self.rest().get(..*window).unwrap_or_default()].concat();
            let mut starts = self.starts(&text).into_iter();
            let first = starts.next();
            starts.next().map(|second| (first, second))
        });
        let [.., window] = windows;
        match next {
            Some((first, second)) => {
                // Numbers continue across the pieces of a list.
                let counted = first.and_then(|first| first.item).and_then(|(first, _)| self.number.or(first));
                let goes_on = matches!(second.item, Some((_, 1)));
                let number = counted.filter(|_| goes_on).and_then(|number| number.checked_add(1));
                self.cut(second.at, number, String::new(), finished);
            }
            None if self.rest().len() >= WINDOW => {
                let head =
                    head_of(&[self.head.as_str(), self.rest().get(..window).unwrap_or_default()].concat());
                self.cut(window, None, head, finished);
            }
            None => return false,
        }
        true
    }

    fn cut(&mut self, at: usize, number: Option<u64>, head: String, finished: &mut Vec<Piece>) {
        let piece = self.piece(0..at);
        if !piece.text.trim().is_empty() {
            self.has_begun = true;
            self.definitions = defined(&piece);
            finished.push(piece);
        }
        self.is_apart = self.is_apart_at(at) && head.is_empty();
        (self.number, self.head) = (number, head);
        self.start += at;
    }

    /// Returns the end of the last complete line in the first `most` bytes. If no line is complete: 0, or the limit
    /// itself if a whole [`WINDOW`] is full.
    fn window(&self, most: usize) -> usize {
        let end = self.rest().floor_char_boundary(most);
        let lines = self.rest().get(..end).and_then(|text| text.rfind('\n')).map(|at| at + 1);
        lines.unwrap_or(if most == WINDOW && self.rest().len() >= WINDOW { end } else { 0 })
    }

    fn is_apart_at(&self, at: usize) -> bool {
        let before = self.rest().get(..at).unwrap_or_default();
        before.trim_end_matches([' ', '\t', '\r', '>']).strip_suffix('\n').is_some_and(|before| {
            before.trim_end_matches([' ', '\t', '\r']).ends_with('\n') || before.is_empty()
        })
    }

    fn starts(&self, text: &str) -> Vec<BlockStart> {
        let mut starts = Vec::new();
        let (mut depth, mut list, mut read, mut first_at) = (0_usize, None, 0, 0);
        for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
            let mut at = start(text, &event, &range);
            // A link definition is kept with the block after it, which might be parsed differently without the
            // definition.
            if depth == 0 && !matches!(event, Event::End(_)) {
                let between = text.get(read..at).unwrap_or_default();
                at -= between.trim_start_matches(['\n', '\r', ' ']).len();
                read = range.end;
            }
            first_at = if depth == 0 { at } else { first_at };
            if matches!((&list, depth), (Some((_, 0)), 1)) {
                at = first_at;
            }
            let at = at.saturating_sub(self.head.len());
            match event {
                Event::Start(Tag::List(first)) if depth == 0 => {
                    list = Some((first, 0));
                    depth += 1;
                }
                Event::Start(Tag::Item) if depth == 1 => {
                    starts.push(BlockStart { at, item: list });
                    list = list.map(|(first, place)| (first, place + 1));
                    depth += 1;
                }
                Event::Start(_) => {
                    if depth == 0 {
                        starts.push(BlockStart { at, item: None });
                        list = None;
                    }
                    depth += 1;
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                _ if depth == 0 => starts.push(BlockStart { at, item: None }),
                _ => {}
            }
        }
        starts
    }
}

/// Returns the byte offset at which a block must begin to be parsed correctly without the text before it.
pub(super) fn start(text: &str, event: &Event<'_>, range: &Range<usize>) -> usize {
    // Spaces at the beginning matter for a list or code. Before a paragraph they would turn it into code.
    let counts = matches!(event, Event::Start(Tag::List(_) | Tag::Item | Tag::CodeBlock(_)));
    if counts { line_start(text, range.start) } else { range.start }
}

/// Returns the start of the line if only spaces precede the byte offset `at` in it, else `at`.
fn line_start(text: &str, at: usize) -> usize {
    let line = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    if text.get(line..at).is_some_and(|between| between.trim().is_empty()) { line } else { at }
}

/// Returns the code fence or table header that must be repeated if the last block is split; empty if none.
fn head_of(text: &str) -> String {
    let probe = [text.trim_end_matches('\n'), "\nx\n"].concat();
    let mut depth = 0_usize;
    let mut last = None;
    for (event, range) in Parser::new_ext(&probe, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let lines = match tag {
                        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => 1,
                        Tag::Table(_) => 2,
                        _ => 0,
                    };
                    last = Some((line_start(&probe, range.start), lines));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let Some((at, lines)) = last else { return String::new() };
    probe.get(at..).unwrap_or_default().split_inclusive('\n').take(lines).collect()
}
