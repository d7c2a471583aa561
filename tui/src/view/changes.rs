//! List of changed files, below the agents and the steps of a plan.

use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::card::in_project;
use crate::diff::Counts;
use crate::model::{ListedFile, Model};
use crate::text::{Clusters, SafeStr, SafeText};

/// Column of the texts, after the border.
const TEXT: u16 = 2;

/// Draws the files with their numbers of added and removed lines.
pub(super) fn changes(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    pane.clear(Style::new());
    (0..pane.height()).for_each(|y| _ = pane.put(0, y, "│", theme.dim()));
    let (files, left_out) = model.changes.files();
    let count = files.len();
    let room = usize::from(pane.height().saturating_sub(1));
    let notes = usize::from(left_out > 0);
    // The last line reports the number of further files.
    let shown = if count + notes > room { room.saturating_sub(notes + 1) } else { count };
    for (y, (path, listed)) in (1..=shown).zip(files) {
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        file(in_project(path, &model.start.project), listed, pane, y, theme);
    }
    let summary = model.changes.summary().map(|summary| format!(" · {summary}")).unwrap_or_default();
    pane.put(TEXT, 0, SafeText::line(&format!("changed{summary}")).all(), theme.strong());
    let mut below = Vec::new();
    if count > shown {
        below.push(format!("… {} more (:diff)", count - shown));
    }
    if left_out > 0 {
        let calls = if left_out == 1 { "call" } else { "calls" };
        below.push(format!("not counted: {left_out} {calls}"));
    }
    for (y, line) in (shown + 1..).zip(&below) {
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        pane.put(TEXT, y, SafeText::line(line).all(), theme.dim());
    }
}

/// Draws a file. The end of a long path is shown, since it says more than its beginning.
fn file(path: &[u8], listed: &ListedFile, pane: &mut Pane<'_>, y: u16, theme: Theme) {
    let counts = SafeText::line(&brief(listed));
    let columns = |text: &str| Clusters::new(text, 0).map(|cluster| cluster.columns).sum::<usize>();
    let room = usize::from(pane.width().saturating_sub(TEXT)).saturating_sub(columns(counts.as_str()) + 1);
    let path = SafeText::labelled("", path);
    let (is_cut, path) = end(&path, room);
    let x = pane.put(TEXT, y, if is_cut { "…" } else { "" }, theme.dim());
    let x = pane.put(x, y, path, Style::new());
    pane.put(x + 1, y, counts.all(), theme.dim());
}

/// Returns the numbers of added and removed lines, or another kind of change; details are in `:diff`.
fn brief(listed: &ListedFile) -> String {
    let fact = listed.facts.first().and_then(|fact| fact.split([' ', ',']).next());
    let words = match fact {
        Some(fact) if listed.counts == Counts::default() => fact.to_owned(),
        _ => listed.counts.to_string(),
    };
    if listed.by_others { format!("{words} · others") } else { words }
}

/// Returns the end of a text that fits into `room` columns, and true if it was cut.
fn end(text: &SafeText, room: usize) -> (bool, SafeStr<'_>) {
    let clusters: Vec<_> = Clusters::new(text.as_str(), 0).collect();
    let mut left: usize = clusters.iter().map(|cluster| cluster.columns).sum();
    if left <= room {
        return (false, text.all());
    }
    for cluster in &clusters {
        left -= cluster.columns;
        if left < room {
            return (true, text.slice(cluster.end()..text.len()));
        }
    }
    (true, text.slice(text.len()..text.len()))
}
