use std::ops::Range;

use super::block::{Block, BlockPlace, BlockRow};
use super::copied::text_of;
use super::part::Unfolded;
use super::rows::{Rows, TranscriptLine};
use super::selection::{CursorMove, Selection, Shape};
use super::walk;

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    blocks: Vec<Block>,
    position: Position,
    found: Option<(usize, BlockPlace)>,
    mark: Option<usize>,
    selection: Option<Selection>,
    unfolded: Unfolded,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    /// The last row is at the bottom of the screen; new text scrolls the transcript.
    #[default]
    Following,
    /// The row at this place is at the top of the screen.
    At { block: usize, place: BlockPlace },
}

/// Scroll position, search match, mark and folding, to be restored later.
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
    /// True for the search match, and for the first row of the marked block.
    pub is_found: bool,
    pub selected: Range<u16>,
}

impl Transcript {
    pub(crate) fn push(&mut self, block: Block) -> usize {
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    /// Appends the block of a tool call, below an empty row if the block above has output.
    pub(crate) fn push_call(&mut self, block: Block) -> usize {
        let gap = self.blocks.last().is_some_and(Block::parts_from_call);
        self.push(Block { gap, ..block })
    }

    /// Appends the row that ends a turn, below an empty row if the block above has output or text.
    pub(crate) fn push_end(&mut self, block: Block) -> usize {
        let gap = self.blocks.last().is_some_and(Block::parts_from_end);
        self.push(Block { gap, ..block })
    }

    /// Inserts an empty row between block `at` and a tool call below it, if block `at` now has output.
    pub(crate) fn part_below(&mut self, at: usize) {
        let is_tall = self.blocks.get(at).is_some_and(Block::parts_from_call);
        let below = self.blocks.get_mut(at + 1).filter(|below| below.is_call());
        if let Some(below) = below.filter(|_| is_tall) {
            below.gap = true;
        }
    }

    /// Removes the block with this index and all later ones, and returns them. Scrolls to the end.
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

    /// Returns the rows of a screen of this size, from the top.
    pub(crate) fn visible(&self, width: u16, height: u16) -> Vec<Visible<'_>> {
        let height = usize::from(height);
        let mut line = self.top(width, height);
        let found = self.found_line(width);
        let selected = self.selection.map(|selection| selection.selected(self.rows(width)));
        let marked = self.mark.filter(|mark| *mark < self.len()).map(|mark| self.rows(width).begin_of(mark));
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
        let end = self.rows(width).down(top, usize::from(height));
        top.block..(end.block + 1).min(self.blocks.len())
    }

    pub(crate) fn shows_whole(&self, blocks: &Range<usize>, (width, height): (u16, u16)) -> bool {
        let gap = self.blocks.get(blocks.start).map_or(0, |block| usize::from(block.gap));
        let top = self.top(width, usize::from(height));
        let end = self.rows(width).down(top, usize::from(height));
        top <= TranscriptLine { block: blocks.start, row: gap }
            && TranscriptLine { block: blocks.end, row: 0 } <= end
    }

    /// Scrolls down, or up if `rows` is negative. At the end, the transcript scrolls on its own with new text.
    pub(crate) fn scroll(&mut self, rows: isize, (width, height): (u16, u16)) {
        let top = self.top(width, usize::from(height));
        let moved = if rows < 0 {
            self.rows(width).up(top, rows.unsigned_abs())
        } else {
            self.rows(width).down(top, rows.unsigned_abs())
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
            rows += self.rows(width).height(block);
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

    /// Marks a block, and scrolls so that the row `top` is at the top of the screen.
    pub(super) fn mark_at(&mut self, block: usize, top: TranscriptLine, (width, height): (u16, u16)) {
        (self.mark, self.found) = (Some(block), None);
        self.stand_at(top, width, usize::from(height));
    }

    pub(crate) fn fold_all(&mut self, fold: impl FnOnce(&mut Unfolded)) {
        fold(&mut self.unfolded);
        self.blocks.iter_mut().for_each(|block| block.opened = None);
    }

    pub(crate) const fn unfolded(&self) -> Unfolded {
        self.unfolded
    }

    pub(super) fn rows(&self, width: u16) -> Rows<'_> {
        Rows::new(&self.blocks, self.unfolded, width)
    }

    pub(crate) fn extent(&self, block: usize) -> Range<usize> {
        walk::extent(&self.blocks, block)
    }

    /// Joins blocks to a single block in which nothing is folded; `None` for an empty range.
    pub(crate) fn whole(&self, blocks: Range<usize>) -> Option<Block> {
        walk::whole(self.blocks.get(blocks)?)
    }

    pub(crate) fn text_of(&self, blocks: Range<usize>, width: u16) -> String {
        text_of(self.rows(width), blocks)
    }

    pub(super) fn found_line(&self, width: u16) -> Option<TranscriptLine> {
        let (block, place) = self.found.filter(|(block, _)| *block < self.len())?;
        Some(self.rows(width).line(block, place))
    }

    pub(super) fn found_at(&mut self, line: TranscriptLine, (width, height): (u16, u16)) {
        self.found = self.rows(width).place(line).map(|place| (line.block, place));
        self.mark = None;
        let top = self.rows(width).up(line, usize::from(height / 3));
        self.stand_at(top, width, usize::from(height));
    }

    pub(crate) fn forget_found(&mut self) {
        self.found = None;
    }

    /// Fixes a row at the top of the screen, even if the rows after it do not fill the screen.
    fn pin(&mut self, line: TranscriptLine, width: u16) {
        if let Some(place) = self.rows(width).place(line) {
            self.position = Position::At { block: line.block, place };
        }
    }

    fn stand_at(&mut self, line: TranscriptLine, width: u16, height: usize) {
        let place = self.rows(width).place(line).filter(|_| line < self.end(width, height));
        self.position = place.map_or(Position::Following, |place| Position::At { block: line.block, place });
    }

    /// Begins a selection: at the marked block, else the search match, else the last text on the screen. During a
    /// selection, new text does not scroll the view. Returns false if the screen has no text.
    pub(crate) fn begin_selection(&mut self, shape: Shape, size: (u16, u16)) -> bool {
        let (width, height) = (size.0, usize::from(size.1));
        let (top, rows) = (self.top(width, height), self.rows(width));
        let shown = || (0..height).map(|down| rows.down(top, down));
        let is_shown = |line: &TranscriptLine| shown().any(|one| one == *line);
        let mark = self.marked(size).map(|block| rows.begin_of(block));
        let last = || shown().rfind(|line| rows.text_columns(*line).is_some());
        let Some(line) = mark.or(self.found_line(width)).filter(is_shown).or_else(last) else { return false };
        self.selection = Some(Selection::new(shape, line, self.follows(), rows));
        self.pin(top, width);
        true
    }

    /// Ends the selection. If the transcript was at its end before the selection, scrolls to the end.
    pub(crate) fn end_selection(&mut self) {
        if self.selection.take().is_some_and(Selection::followed) {
            self.follow();
        }
    }

    pub(crate) fn selection_shape(&self) -> Option<Shape> {
        self.selection.map(Selection::shape)
    }

    pub(crate) fn set_selection_shape(&mut self, shape: Shape) {
        if let Some(selection) = &mut self.selection {
            selection.set_shape(shape);
        }
    }

    pub(crate) fn swap_ends(&mut self, size: (u16, u16)) {
        self.change_selection(size, |selection, _| {
            selection.swap_ends();
            true
        });
    }

    pub(crate) fn move_cursor(&mut self, by: CursorMove, size: (u16, u16)) {
        self.change_selection(size, |selection, rows| selection.go(by, rows));
    }

    pub(crate) fn select_around(&mut self, size: (u16, u16)) {
        self.change_selection(size, Selection::widen);
    }

    /// Calls `change` with the selection. If it returns true, stores the selection and scrolls to the cursor.
    fn change_selection(
        &mut self,
        (width, height): (u16, u16),
        change: impl FnOnce(&mut Selection, Rows<'_>) -> bool,
    ) {
        let Some(mut selection) = self.selection else { return };
        let (rows, height) = (self.rows(width), usize::from(height));
        if change(&mut selection, rows) {
            let line = selection.cursor_line(rows);
            let lowest = rows.up(line, height.saturating_sub(1));
            let top = self.top(width, height).clamp(lowest, line);
            self.selection = Some(selection);
            self.pin(top, width);
        }
    }

    pub(crate) fn selected_text(&self, width: u16) -> Option<String> {
        self.selection.map(|selection| selection.text(self.rows(width)))
    }

    pub(crate) fn selected_rows(&self, width: u16) -> usize {
        self.selection.map_or(0, |selection| selection.row_count(self.rows(width)))
    }

    pub(crate) fn cursor_on_screen(&self, (width, height): (u16, u16)) -> Option<(u16, u16)> {
        let (selection, rows) = (self.selection?, self.rows(width));
        let line = selection.cursor_line(rows);
        let top = self.top(width, usize::from(height));
        let y = (0..height).find(|y| rows.down(top, usize::from(*y)) == line)?;
        Some((selection.cursor_column(rows).min(width.saturating_sub(1)), y))
    }

    pub(super) fn top(&self, width: u16, height: usize) -> TranscriptLine {
        let end = self.end(width, height);
        match self.position {
            Position::Following => end,
            // On a wider screen the text may be so short that its end is visible.
            Position::At { block, place } => self.rows(width).line(block, place).min(end),
        }
    }

    fn end(&self, width: u16, height: usize) -> TranscriptLine {
        let rows = self.rows(width);
        rows.up(rows.end(), height)
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
