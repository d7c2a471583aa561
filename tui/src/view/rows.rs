//! Rows of blocks, in the transcript and in requests.

use super::pane::Pane;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::keymap::Keymap;
use crate::model::{Block, BlockRow, Fold, Look, Part};
use crate::text::SafeText;

/// Draws one row of a block.
pub(super) fn draw(
    pane: &mut Pane<'_>,
    y: u16,
    (block, row): (&Block, BlockRow),
    keymap: &Keymap,
    theme: Theme,
) {
    match row {
        BlockRow::Gap => {}
        BlockRow::Text { part, row } => {
            let Some(part) = block.parts.get(part) else { return };
            let text = part.text();
            // Only of a diff does it matter what the line begins with.
            let line = if part.look() == Look::Diff { line_of(text, row.start) } else { "" };
            let style = theme.row(part.look(), line);
            let (start, rest) = part.look().gutters();
            let gutter = if row.first && (row.start == 0 || repeats(part.look())) { start } else { rest };
            let x = pane.put(0, y, gutter, theme.dim());
            pane.put(x, y, text.slice(row.start..row.end), style);
        }
        BlockRow::Folded { part, count } => {
            let Some(part) = block.parts.get(part) else { return };
            let text = SafeText::prose(&folded(part, count, keymap));
            pane.put(0, y, text.all(), theme.dim());
        }
    }
}

/// Whether the mark stands before every line, and not only before the first.
const fn repeats(look: Look) -> bool {
    !matches!(look, Look::User | Look::Notice | Look::Error | Look::Turn)
}

/// The beginning of the line that a row belongs to.
fn line_of(text: &SafeText, row: usize) -> &str {
    let all = text.as_str();
    let start = all.get(..row).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    all.get(start..).unwrap_or_default()
}

fn folded(part: &Part, count: usize, keymap: &Keymap) -> String {
    let rows = if count == 1 { "row" } else { "rows" };
    let hint = |command| keymap.hint(KeyMode::Normal, command);
    match part.fold() {
        Fold::Thinking => {
            format!("┊ thinking, {count} {rows} · {} in Normal shows it", hint(Command::FoldThinking))
        }
        _ => format!("  … {count} more {rows} · {} in Normal shows them", hint(Command::FoldOutput)),
    }
}
