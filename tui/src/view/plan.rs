//! View of a plan, and the list of its steps in the pane beside the transcript.

use ratatui::style::Style;

use super::pane::Pane;
use super::rows;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::model::{Look, Model, Unfolded, plan_rows};
use crate::plan::Progress;
use crate::text::{Clusters, SafeText};

/// Column at which the text begins, after the border.
const TEXT: u16 = 2;

/// Draws the view of a plan, with key hints in the last row.
pub(super) fn view(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let sheet = model.versions.as_ref().map_or(&model.plan_sheet, |compared| &compared.sheet);
    let rows = plan_rows(pane.height());
    let top = sheet.top(pane.width(), rows);
    for y in 0..rows {
        if let Some(row) = sheet.block.row(top + usize::from(y), pane.width(), Unfolded::default()) {
            rows::draw(pane, y, &sheet.block, row, &model.start.keymap, theme, Style::new());
        }
    }
    let below = sheet.rows(pane.width()).saturating_sub(top + usize::from(rows));
    let keys_of = if model.versions.is_some() { KeyMode::Versions } else { KeyMode::Plan };
    let key = |command| model.start.keymap.hint(keys_of, command);
    let [down, up] = [Command::LineDown, Command::LineUp].map(key);
    let more = match below {
        0 => String::new(),
        1 => "  1 more line".to_owned(),
        below => format!("  {below} more lines"),
    };
    let versions = model.plans.current().map_or(0, |plan| plan.versions().len());
    let keys = if model.versions.is_some() {
        let keys = [Command::OlderVersion, Command::NewerVersion, Command::OlderBase, Command::NewerBase];
        let [older, newer, base, base_up] = keys.map(key);
        let back = key(Command::Back);
        format!(
            "{back} back  {older}/{newer} newer side  {base}/{base_up} older side  {down}/{up} scroll{more}"
        )
    } else {
        let compare = match versions {
            0 | 1 => String::new(),
            versions => format!("  {} {versions} versions", key(Command::Versions)),
        };
        format!("{} close  {down}/{up} scroll{compare}{more}", key(Command::ClosePlan))
    };
    pane.put(0, rows, SafeText::line(&keys).all(), theme.dim());
}

pub(super) fn steps(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let Some(plan) = model.plans.beside() else { return };
    pane.clear(Style::new());
    (0..pane.height()).for_each(|y| _ = pane.put(0, y, "│", theme.dim()));
    pane.put(TEXT, 0, SafeText::line(&format!("plan · {}", plan.state())).all(), theme.strong());
    let lines = plan.lines(model.now);
    let room = usize::from(pane.height().saturating_sub(1));
    for (y, line) in (1..pane.height()).zip(lines.iter().skip(first(plan, lines.len(), room))) {
        let style = theme.row(Look::of_step(line.status));
        let text = SafeText::line(&line.text);
        pane.put(TEXT, y, text.all(), style);
        let columns: usize = Clusters::new(text.as_str(), 0).map(|cluster| cluster.columns).sum();
        if columns > usize::from(pane.width().saturating_sub(TEXT)) {
            pane.put(pane.width().saturating_sub(1), y, "…", style);
        }
    }
}

fn first(plan: &Progress, lines: usize, room: usize) -> usize {
    plan.at().saturating_sub(room / 2).min(lines.saturating_sub(room))
}
