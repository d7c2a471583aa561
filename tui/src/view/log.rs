use ratatui::style::Style;

use super::pane::Pane;
use super::rows;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::model::{LogRow, Look, Model, Unfolded, log_rows, plan_rows};
use crate::text::SafeText;

/// Column at which the kind of an event begins.
const KIND: u16 = 12;

const DATA: u16 = 36;

pub(super) fn view(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let key = |command| model.start.keymap.hint(KeyMode::Log, command);
    let [close, down, up] = [Command::CloseLog, Command::LineDown, Command::LineUp].map(key);
    let keys = if let Some(sheet) = &model.log.event {
        let height = plan_rows(pane.height());
        let top = sheet.top(pane.width(), height);
        for y in 0..height {
            if let Some(row) = sheet.block.row(top + usize::from(y), pane.width(), Unfolded::default()) {
                rows::draw(pane, y, &sheet.block, row, &model.start.keymap, theme, Style::new());
            }
        }
        format!("{close} back to the log  {down}/{up} scroll")
    } else {
        pane.put(0, 0, SafeText::line(&model.log.heading()).all(), theme.strong());
        for (y, (row, is_chosen)) in (1..).zip(model.log.shown(log_rows(pane.height()))) {
            line(pane, y, row, if is_chosen { Some(theme.strong()) } else { None }, theme);
        }
        let [open, filter, kind] = [Command::OpenEvent, Command::FilterLog, Command::OnlyKind].map(key);
        format!(
            "{close} close  {down}/{up} move  {open} the whole event  {filter} filter  {kind} only its kind"
        )
    };
    let y = pane.height().saturating_sub(1);
    pane.put(0, y, SafeText::line(&keys).all(), theme.dim());
}

fn line(pane: &mut Pane<'_>, y: u16, row: &LogRow, chosen: Option<Style>, theme: Theme) {
    let plain = if row.kind == "denied" { theme.row(Look::Error) } else { Style::new() };
    let style = chosen.unwrap_or(plain);
    if chosen.is_some() {
        pane.put(0, y, "▸", style);
    }
    let time = format!("{:>8.1}", row.after.as_secs_f64());
    pane.put(2, y, SafeText::line(&time).all(), chosen.unwrap_or_else(|| theme.dim()));
    let kind = if row.agent == "1" { row.kind.clone() } else { format!("{} {}", row.agent, row.kind) };
    let end = pane.put(KIND, y, SafeText::line(&kind).all(), style);
    pane.put(DATA.max(end + 2), y, SafeText::line(&row.text).all(), chosen.unwrap_or_else(|| theme.dim()));
}
