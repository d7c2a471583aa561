use ratatui::style::Style;

use super::pane::Pane;
use super::rows;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::model::{Model, Unfolded, plan_rows};
use crate::text::SafeText;

pub(super) fn view(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let findings = &model.agents.shown().findings;
    let sheet = &findings.sheet;
    let rows = plan_rows(pane.height());
    let top = sheet.top(pane.width(), rows);
    for y in 0..rows {
        if let Some(row) = sheet.block.row(top + usize::from(y), pane.width(), Unfolded::default()) {
            rows::draw(pane, y, &sheet.block, row, &model.start.keymap, theme, Style::new());
        }
    }
    let key = |command| model.start.keymap.hint(KeyMode::Findings, command);
    let [open, fix, close] = [Command::OpenFinding, Command::FixFinding, Command::CloseFindings].map(key);
    let first = if findings.is_open { String::new() } else { format!("{open} show  ") };
    let last = if findings.is_open { "back" } else { "close" };
    let below = sheet.rows(pane.width()).saturating_sub(top + usize::from(rows));
    let more = match below {
        0 => String::new(),
        1 => "  1 more line".to_owned(),
        below => format!("  {below} more lines"),
    };
    let hints = format!("{first}{fix} ask to fix it  {close} {last}{more}");
    pane.put(0, rows, SafeText::line(&hints).all(), theme.dim());
}
