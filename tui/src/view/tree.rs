use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::model::{Mode, Model, TreeLine, tree};
use crate::text::{Clusters, SafeText};

/// Column at which the text of a top-level agent begins, after the border and the selection mark.
const TEXT: u16 = 4;

pub(super) fn tree(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    pane.clear(Style::new());
    if tree::columns(model, model.size.0).is_some() {
        (0..pane.height()).for_each(|y| _ = pane.put(0, y, "│", theme.dim()));
    }
    pane.put(2, 0, SafeText::line(&heading(model)).all(), theme.strong());
    let lines = tree::lines(model);
    let keys = u16::from(model.walks_tree());
    let room = pane.height().saturating_sub(1 + keys);
    let first = first_line(model, &lines, usize::from(room));
    for (y, line) in (1..=room).zip(lines.iter().skip(first)) {
        self::line(model, line, pane, y, theme);
    }
    if model.walks_tree() {
        pane.put(2, pane.height().saturating_sub(1), SafeText::line(&hints(model)).all(), theme.dim());
    }
}

fn heading(model: &Model) -> String {
    let at_work = tree::listed(model).iter().filter(|(_, view)| view.turn.is_running()).count();
    let count = if at_work == 0 { String::new() } else { format!(" · {at_work} at work") };
    let mode = if model.mode == Mode::Insert { KeyMode::Insert } else { KeyMode::Normal };
    let key = Some(model.start.keymap.hint(mode, Command::Agents)).filter(|_| !model.walks_tree());
    let key = key.filter(|key| !key.is_empty()).map(|key| format!(" · {key} opens")).unwrap_or_default();
    format!("agents{count}{key}")
}

fn line(model: &Model, line: &TreeLine, pane: &mut Pane<'_>, y: u16, theme: Theme) {
    let is_marked = line.names && line.agent == *marked(model);
    let is_shown = line.agent == *model.agents.shown_id();
    if is_marked {
        pane.put(2, y, "▸", theme.strong());
    }
    let style = match (line.names, is_shown || is_marked) {
        (true, true) => theme.strong(),
        (true, false) if !line.over => Style::new(),
        _ => theme.dim(),
    };
    let further = if line.names { 0 } else { 2 };
    let x = TEXT.saturating_add(line.indent).saturating_add(further);
    let text = SafeText::line(&line.text);
    pane.put(x, y, text.all(), style);
    let columns: usize = Clusters::new(text.as_str(), 0).map(|cluster| cluster.columns).sum();
    if columns > usize::from(pane.width().saturating_sub(x)) {
        pane.put(pane.width().saturating_sub(1), y, "…", style);
    }
}

/// Returns the agent that is marked in the list: the selected one while keys move in the list, else the shown one.
fn marked(model: &Model) -> &ipc::id::AgentId {
    if model.walks_tree() { model.agents.selected() } else { model.agents.shown_id() }
}

/// Returns the index of the first line to draw, so that all lines about the marked agent are visible.
fn first_line(model: &Model, lines: &[TreeLine], room: usize) -> usize {
    let marked = marked(model);
    let end = lines.iter().rposition(|line| line.agent == *marked).map_or(0, |at| at + 1);
    end.saturating_sub(room)
}

fn hints(model: &Model) -> String {
    let key = |command, word| format!("{} {word}", model.start.keymap.hint(KeyMode::Agents, command));
    let hints = [
        key(Command::OpenAgent, "open"),
        key(Command::MessageAgent, "message"),
        key(Command::StopAgent, "stop"),
        key(Command::CloseAgents, "back"),
    ];
    hints.join("  ")
}
