//! Markdown that comes in pieces, cut where a block is over.
//!
//! A block of the top level, or an item of a list there, is over when the next one begins: no later line can change it. So
//! text is cut there for good, and each piece is read alone, with the [`Definitions`] of links that stand before it. Since the cuts
//! depend on the text alone, it makes no difference how the text came.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::OPTIONS;
use super::definitions::Definitions;
use super::render::defined;

/// The most that is read again with each delta. Of a longer block the beginning is finished before its end is known.
pub(super) const WINDOW: usize = 8 << 10;

/// The Markdown that has come, without the pieces that are finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    all: String,
    /// The bytes of it that are finished, while pieces are cut off.
    start: usize,
    /// The lines that the rest continues a code block or a table with.
    head: String,
    /// The number of the item that the rest begins with, where it continues a list.
    number: Option<u64>,
    /// True if an empty line precedes the rest.
    is_apart: bool,
    has_begun: bool,
    /// The addresses that are defined before the rest.
    definitions: Definitions,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its text, after the lines that it continues a block with.
    pub text: String,
    /// True if there are such lines; they show in another piece.
    pub is_continued: bool,
    /// The number of its item, where it continues a list.
    pub number: Option<u64>,
    /// True if an empty line precedes it.
    pub is_apart: bool,
    pub definitions: Definitions,
}

/// The start of a block, or of an item of a list.
struct BlockStart {
    at: usize,
    /// The first number of its list, and its place in the list.
    item: Option<(Option<u64>, u64)>,
}

impl Source {
    pub(crate) fn push(&mut self, text: &str) {
        self.all.push_str(text);
    }

    /// Takes out the pieces that are finished now.
    pub(crate) fn finished(&mut self) -> Vec<Piece> {
        let mut finished = Vec::new();
        while self.finish(&mut finished) {}
        self.all.drain(..std::mem::take(&mut self.start));
        finished
    }

    /// The bytes that no piece has.
    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    /// The piece that is not finished; none where there is nothing to see in it.
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

    /// Finishes the first block, if it is complete, and returns true if it did. Only that one: the block
    /// after it is read from its start.
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
                // A list goes on counting over the pieces that it is cut into.
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

    /// Finishes everything before a place.
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

    /// The end of the last whole line within so many bytes; of a long line all that is near enough.
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

    /// The starts of the blocks in a text, as places in the rest.
    fn starts(&self, text: &str) -> Vec<BlockStart> {
        let mut starts = Vec::new();
        let (mut depth, mut list, mut read, mut first_at) = (0_usize, None, 0, 0);
        for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
            let mut at = start(text, &event, &range);
            // A definition of an address belongs to the block after it: without it that block could be read as another one.
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

/// The start of a block in a text, from which on it can be read alone.
pub(super) fn start(text: &str, event: &Event<'_>, range: &Range<usize>) -> usize {
    // The spaces before a list or code count. Before a paragraph they would make code of it, where it stands alone.
    let counts = matches!(event, Event::Start(Tag::List(_) | Tag::Item | Tag::CodeBlock(_)));
    if counts { line_start(text, range.start) } else { range.start }
}

/// The start of the line of a place, where only spaces are between.
fn line_start(text: &str, at: usize) -> usize {
    let line = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    if text.get(line..at).is_some_and(|between| between.trim().is_empty()) { line } else { at }
}

/// Returns the lines that continue the last block of a text in another piece: the fence of open code, the
/// header of a table.
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
