//! Rows with characters that terminals draw in different widths: emoji of several characters, flags, spacing combining
//! marks. A row that has or had such a character is erased and written completely when it changes, because a comparison
//! of cells does not find the remains.

use std::collections::BTreeMap;
use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell, CellDiffOption, CellWidth};
use tui::text::is_disputed;

#[derive(Default)]
pub(super) struct Disputed {
    rows: BTreeMap<usize, Vec<Cell>>,
}

impl Disputed {
    /// Forgets the last frame, because it is unknown what the window shows now.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
    }

    /// Marks rows that must be written completely. Returns the bytes that erase these rows before the frame is written.
    pub(super) fn settle(&mut self, buffer: &mut Buffer) -> String {
        let width = usize::from(buffer.area.width).max(1);
        let has = |row: &[Cell]| row.iter().any(|cell| cell.symbol().len() > 3 && is_disputed(cell.symbol()));
        let rows = buffer.content.chunks(width).enumerate().filter(|(_, row)| has(row));
        let rows: BTreeMap<_, _> = rows.map(|(y, row)| (y, row.to_vec())).collect();
        let before = std::mem::replace(&mut self.rows, rows);
        let mut erase = String::new();
        for (y, row) in buffer.content.chunks_mut(width).enumerate() {
            let changes = before.get(&y) != self.rows.get(&y);
            if changes {
                // Writing to a string cannot fail.
                let _ = write!(erase, "\x1b[m\x1b[{};1H\x1b[2K", y + 1);
            }
            if changes || self.rows.contains_key(&y) {
                write_whole(row, changes);
            }
        }
        erase
    }
}

/// Marks the cells of a row: those that a wide character covers are never written, and all others are if `changes`.
fn write_whole(row: &mut [Cell], changes: bool) {
    let mut covered = 0;
    for cell in row {
        let columns = cell.cell_width();
        if covered > 0 {
            cell.set_diff_option(CellDiffOption::Skip);
            covered -= 1;
        } else {
            if changes {
                cell.set_diff_option(CellDiffOption::AlwaysUpdate);
            }
            covered = columns.saturating_sub(1);
        }
    }
}
