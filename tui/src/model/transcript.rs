use std::ops::Range;

use super::block::{Block, BlockPlace, BlockRow};
use super::part::Unfolded;
use super::selection::Selection;

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    blocks: Vec<Block>,
    position: Position,
    found: Option<(usize, BlockPlace)>,
    mark: Option<usize>,
    pub(super) selection: Option<Selection>,
    pub unfolded: Unfolded,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    /// The end is at the bottom of the screen and stays there while text arrives.
    #[default]
    Following,
    /// The given row is at the top of the screen.
    At { block: usize, place: BlockPlace },
}

/// Scroll position, search match and folding, to be restored later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadingPlace {
    position: Position,
    found: Option<(usize, BlockPlace)>,
    mark: Option<usize>,
    unfolded: Unfolded,
}

#[derive(Clone, Debug)]
pub(crate) struct Visible<'a> {
    pub block: &'a Block,
    pub row: BlockRow,
    /// True for the search match and for the first row of the marked block.
    pub is_found: bool,
    pub selected: Range<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TranscriptLine {
    pub(super) block: usize,
    pub(super) row: usize,
}

impl Transcript {
    pub(crate) fn push(&mut self, block: Block) -> usize {
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    /// Adds the block of a call, apart from the output of the one above.
    pub(crate) fn push_call(&mut self, block: Block) -> usize {
        let gap = self.blocks.last().is_some_and(Block::parts_from_call);
        self.push(Block { gap, ..block })
    }

    /// Adds the row that ends a turn.
    pub(crate) fn push_end(&mut self, block: Block) -> usize {
        let gap = self.blocks.last().is_some_and(Block::parts_from_end);
        self.push(Block { gap, ..block })
    }

    /// Sets the call below a block apart, if the block has output by now.
    pub(crate) fn part_below(&mut self, at: usize) {
        let is_tall = self.blocks.get(at).is_some_and(Block::parts_from_call);
        let below = self.blocks.get_mut(at + 1).filter(|below| below.is_call());
        if let Some(below) = below.filter(|_| is_tall) {
            below.gap = true;
        }
    }

    /// Returns the removed blocks. Scrolls to the end.
    pub(crate) fn cut_from(&mut self, block: usize) -> Vec<Block> {
        (self.found, self.mark, self.position) = (None, None, Position::Following);
        self.selection = None;
        self.blocks.split_off(block.min(self.blocks.len()))
    }

    pub(crate) const fn place(&self) -> ReadingPlace {
        ReadingPlace { position: self.position, found: self.found, mark: self.mark, unfolded: self.unfolded }
    }

    pub(crate) fn go_back(&mut self, place: ReadingPlace) {
        (self.position, self.found) = (place.position, place.found);
        (self.mark, self.unfolded) = (place.mark, place.unfolded);
        self.selection = None;
    }

    pub(crate) const fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn last(&self) -> Option<usize> {
        self.blocks.len().checked_sub(1)
    }

    pub(crate) fn block_mut(&mut self, at: usize) -> Option<&mut Block> {
        self.blocks.get_mut(at)
    }

    pub(crate) fn follows(&self) -> bool {
        self.position == Position::Following
    }

    /// Returns the rows for a screen of the given size, from the top.
    pub(crate) fn visible(&self, width: u16, height: u16) -> Vec<Visible<'_>> {
        let height = usize::from(height);
        let mut line = self.top(width, height);
        let found = self.found_line(width);
        let (marked, selected) = (self.mark_line(), self.selected(width));
        let mut rows = Vec::with_capacity(height);
        while rows.len() < height
            && let Some(block) = self.blocks.get(line.block)
        {
            match block.row(line.row, width, self.unfolded) {
                Some(row) => {
                    let is_found = found == Some(line) || marked == Some(line);
                    let selected = selected.map_or(0..0, |selected| selected.columns(line));
                    rows.push(Visible { block, row, is_found, selected });
                    line.row += 1;
                }
                None => line = TranscriptLine { block: line.block + 1, row: 0 },
            }
        }
        rows
    }

    pub(crate) fn shown_blocks(&self, width: u16, height: u16) -> Range<usize> {
        let top = self.top(width, usize::from(height));
        let end = self.down(top, usize::from(height), width);
        top.block..(end.block + 1).min(self.blocks.len())
    }

    /// True if these blocks are on the screen from their first row to their last.
    pub(crate) fn shows_whole(&self, blocks: &Range<usize>, (width, height): (u16, u16)) -> bool {
        let gap = self.blocks.get(blocks.start).map_or(0, |block| usize::from(block.gap));
        let top = self.top(width, usize::from(height));
        let end = self.down(top, usize::from(height), width);
        top <= TranscriptLine { block: blocks.start, row: gap }
            && TranscriptLine { block: blocks.end, row: 0 } <= end
    }

    /// Negative is up. At the end, later text scrolls automatically.
    pub(crate) fn scroll(&mut self, rows: isize, (width, height): (u16, u16)) {
        let top = self.top(width, usize::from(height));
        let moved = if rows < 0 {
            self.up(top, rows.unsigned_abs(), width)
        } else {
            self.down(top, rows.unsigned_abs(), width)
        };
        self.stand_at(moved, width, usize::from(height));
    }

    pub(crate) fn go_to_top(&mut self, (width, height): (u16, u16)) {
        self.stand_at(TranscriptLine { block: 0, row: 0 }, width, usize::from(height));
    }

    pub(crate) fn below(&self, (width, height): (u16, u16), most: usize) -> usize {
        let (top, end) = (self.top(width, usize::from(height)), self.end(width, usize::from(height)));
        let mut rows = 0;
        for block in top.block..end.block {
            rows += self.blocks.get(block).map_or(0, |block| block.height(width, self.unfolded));
            if rows > most + top.row {
                return most;
            }
        }
        (rows + end.row).saturating_sub(top.row).min(most)
    }

    pub(crate) fn follow(&mut self) {
        (self.mark, self.position) = (None, Position::Following);
    }

    pub(crate) fn marked(&self, (width, height): (u16, u16)) -> Option<usize> {
        self.mark.filter(|mark| self.shown_blocks(width, height).contains(mark))
    }

    pub(crate) const fn forget_mark(&mut self) {
        self.mark = None;
    }

    /// Scrolls so that a row is at the top.
    pub(super) fn mark_at(&mut self, block: usize, top: TranscriptLine, (width, height): (u16, u16)) {
        (self.mark, self.found) = (Some(block), None);
        self.stand_at(top, width, usize::from(height));
    }

    pub(crate) fn fold_all(&mut self, fold: impl FnOnce(&mut Unfolded)) {
        fold(&mut self.unfolded);
        self.blocks.iter_mut().for_each(|block| block.opened = None);
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(super) fn found_line(&self, width: u16) -> Option<TranscriptLine> {
        let (block, place) = self.found?;
        let row = self.blocks.get(block)?.row_of(place, width, self.unfolded);
        Some(TranscriptLine { block, row })
    }

    /// Marks a row as the search match and scrolls to it.
    pub(super) fn found_at(&mut self, line: TranscriptLine, (width, height): (u16, u16)) {
        let block = self.blocks.get(line.block);
        self.found = block.map(|block| (line.block, block.place(line.row, width, self.unfolded)));
        self.mark = None;
        let top = self.up(line, usize::from(height / 3), width);
        self.stand_at(top, width, usize::from(height));
    }

    pub(crate) fn forget_found(&mut self) {
        self.found = None;
    }

    fn mark_line(&self) -> Option<TranscriptLine> {
        let block = self.mark?;
        let row = usize::from(self.blocks.get(block)?.gap);
        Some(TranscriptLine { block, row })
    }

    /// Keeps a row at the top of the screen, even if it is the last one.
    pub(super) fn pin(&mut self, line: TranscriptLine, width: u16) {
        if let Some(block) = self.blocks.get(line.block) {
            let place = block.place(line.row, width, self.unfolded);
            self.position = Position::At { block: line.block, place };
        }
    }

    fn stand_at(&mut self, line: TranscriptLine, width: u16, height: usize) {
        let Some(block) = self.blocks.get(line.block).filter(|_| line < self.end(width, height)) else {
            self.position = Position::Following;
            return;
        };
        let place = block.place(line.row, width, self.unfolded);
        self.position = Position::At { block: line.block, place };
    }

    pub(super) fn top(&self, width: u16, height: usize) -> TranscriptLine {
        let end = self.end(width, height);
        match self.position {
            Position::Following => end,
            Position::At { block, place } => {
                let row = self.blocks.get(block).map_or(0, |at| at.row_of(place, width, self.unfolded));
                // A wider screen may have shortened the text so that its end is in sight.
                TranscriptLine { block, row }.min(end)
            }
        }
    }

    fn end(&self, width: u16, height: usize) -> TranscriptLine {
        self.up(TranscriptLine { block: self.blocks.len(), row: 0 }, height, width)
    }

    pub(super) fn up(&self, from: TranscriptLine, mut rows: usize, width: u16) -> TranscriptLine {
        let mut line = from;
        loop {
            if rows <= line.row {
                return TranscriptLine { row: line.row - rows, ..line };
            }
            rows -= line.row;
            let Some(block) = line.block.checked_sub(1) else { return TranscriptLine { block: 0, row: 0 } };
            let height = self.blocks.get(block).map_or(0, |block| block.height(width, self.unfolded));
            line = TranscriptLine { block, row: height };
        }
    }

    pub(super) fn down(&self, from: TranscriptLine, rows: usize, width: u16) -> TranscriptLine {
        let mut line = TranscriptLine { row: from.row + rows, ..from };
        while let Some(block) = self.blocks.get(line.block) {
            let height = block.height(width, self.unfolded);
            if line.row < height {
                break;
            }
            line = TranscriptLine { block: line.block + 1, row: line.row - height };
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::Look;
    use super::super::part::Part;
    use super::*;
    use crate::text::SafeText;

    fn transcript(blocks: &[&str]) -> Transcript {
        let mut transcript = Transcript::default();
        for text in blocks {
            transcript.push(Block::of(vec![Part::new(SafeText::prose(text), Look::Assistant)]).apart());
        }
        transcript
    }

    fn shown(transcript: &Transcript, width: u16, height: u16) -> Vec<String> {
        let text = |visible: &Visible<'_>| match visible.row {
            BlockRow::Text { part, row } => {
                visible.block.parts[part].text().as_str()[row.start..row.end].trim_end().to_owned()
            }
            _ => String::new(),
        };
        transcript.visible(width, height).iter().map(text).collect()
    }

    #[test]
    fn the_end_is_followed_until_the_reader_goes_up() {
        let mut transcript = transcript(&["a\nb", "c\nd"]);
        assert_eq!(shown(&transcript, 20, 3), ["", "c", "d"]);
        transcript.scroll(-2, (20, 3));
        assert_eq!(shown(&transcript, 20, 3), ["a", "b", ""]);
        transcript.push(Block::of(vec![Part::new(SafeText::prose("e"), Look::Assistant)]));
        assert_eq!(shown(&transcript, 20, 3), ["a", "b", ""], "what comes does not move what is read");
        transcript.scroll(9, (20, 3));
        assert!(transcript.follows());
        assert_eq!(shown(&transcript, 20, 3), ["c", "d", "e"]);
        transcript.go_to_top((20, 3));
        assert_eq!(shown(&transcript, 20, 3), ["", "a", "b"]);
    }

    #[test]
    fn one_row_at_a_time_leads_to_both_ends() {
        let mut transcript = transcript(&["a", "b", "c", "d"]);
        let mut seen = vec![shown(&transcript, 9, 2)];
        while seen.len() < 20 && *seen.last().unwrap() != ["", "a"] {
            transcript.scroll(-1, (9, 2));
            seen.push(shown(&transcript, 9, 2));
        }
        assert_eq!(seen.len(), 7, "{seen:?}");
        (0..6).for_each(|_| transcript.scroll(1, (9, 2)));
        assert!(transcript.follows());
    }

    #[test]
    fn what_is_read_stays_when_the_width_changes() {
        let words: String = (0..100).map(|n| ["w", &n.to_string(), " "].concat()).collect();
        let mut transcript = transcript(&[&words, &words, "end"]);
        transcript.scroll(-12, (40, 5));
        let first = |width| shown(&transcript, width, 5)[0].split(' ').next().unwrap().to_owned();
        let word = first(40);
        assert!(shown(&transcript, 23, 5)[0].contains(&word));
        assert_eq!(first(40), word);
    }
}
