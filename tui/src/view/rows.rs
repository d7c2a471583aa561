//! Drawing of a block's rows, in transcripts and approval requests.

use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::keymap::Keymap;
use crate::model::{Block, BlockRow, Fold, Look, MEASURE, Part};
use crate::text::{Clusters, Row, SafeText, Styled};

/// Column at which the background of code ends; code is as wide as prose.
const CODE: u16 = 2 + MEASURE;

pub(super) fn draw(
    pane: &mut Pane<'_>,
    y: u16,
    block: &Block,
    row: BlockRow,
    keymap: &Keymap,
    theme: Theme,
    marks: Style,
) {
    match row {
        BlockRow::Gap => {}
        BlockRow::Text { part, row } => {
            let Some(part) = block.parts.get(part) else { return };
            let width = pane.width();
            let x = pane.put(0, y, part.mark(row, width), marks);
            part.with_text(width, |text| {
                if part.look().has_code_spans() {
                    with_code(pane, (x, y), text.text(), row, theme);
                } else {
                    toned(pane, (x, y), text, row, part.look(), theme);
                }
            });
        }
        BlockRow::Folded { part, count } => {
            let Some(part) = block.parts.get(part) else { return };
            let text = SafeText::prose(&folded(part, count, keymap));
            pane.put(0, y, text.all(), marks);
        }
    }
}

/// Draws a row of text, each piece in the style of its tone.
fn toned(pane: &mut Pane<'_>, (x, y): (u16, u16), text: &Styled, row: Row, look: Look, theme: Theme) {
    let mut x = x;
    let style = theme.row(look);
    for (range, tone) in text.pieces(row.start..row.end) {
        x = pane.put(x, y, text.text().slice(range), theme.toned(style, look, tone));
    }
    if look == Look::Code {
        pane.fill(x..CODE, y, style);
    }
}

/// Draws a row in which code is marked with backticks. The opening backtick may be in an earlier row.
fn with_code(pane: &mut Pane<'_>, (x, y): (u16, u16), text: &SafeText, row: Row, theme: Theme) {
    let line = text.as_str().get(..row.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let before = text.as_str().get(line..row.start).unwrap_or_default();
    let mut is_code = before.matches('`').count() % 2 == 1;
    let (mut x, mut from) = (x, row.start);
    let style = |is_code| if is_code { theme.code() } else { Style::new() };
    for cluster in Clusters::new(text.as_str().get(..row.end).unwrap_or_default(), row.start) {
        if cluster.text.starts_with('`') {
            // Both backticks belong to the code.
            let cut = if is_code { cluster.end() } else { cluster.at };
            x = pane.put(x, y, text.slice(from..cut), style(is_code));
            (from, is_code) = (cut, !is_code);
        }
    }
    pane.put(x, y, text.slice(from..row.end), style(is_code));
}

fn folded(part: &Part, count: usize, keymap: &Keymap) -> String {
    let lines = if count == 1 { "line" } else { "lines" };
    let key = |command| {
        let key = keymap.hint(KeyMode::Insert, command);
        if key.is_empty() { format!("{} in NORMAL", keymap.hint(KeyMode::Normal, command)) } else { key }
    };
    match part.fold() {
        Fold::Thinking => format!("┊ thinking, {count} {lines} ({})", key(Command::FoldThinking)),
        _ => format!("  … {count} more {lines} ({})", key(Command::FoldOutput)),
    }
}
