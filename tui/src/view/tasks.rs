use protocol::event::TaskState;
use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::model::{Model, counted_tasks, open_tasks, task_line, tasks_beside};
use crate::text::SafeText;
use crate::tool_summary::cut;

const TEXT: u16 = 2;

pub(super) fn row(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    if pane.height() == 0 {
        return;
    }
    if let Some(list) = open_tasks(model) {
        let text = cut(&list.to_string(), usize::from(pane.width()));
        pane.put(0, 0, SafeText::line(&text).all(), theme.dim());
    }
}

pub(super) fn list(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let Some(list) = tasks_beside(model) else { return };
    pane.clear(Style::new());
    (0..pane.height()).for_each(|y| _ = pane.put(0, y, "│", theme.dim()));
    pane.put(TEXT, 0, SafeText::line(&counted_tasks(list)).all(), theme.strong());
    let room = usize::from(pane.height().saturating_sub(1));
    let at_hand = list.tasks.iter().position(|task| task.state == TaskState::InProgress);
    let at_hand = at_hand.or_else(|| list.tasks.iter().position(|task| task.state == TaskState::Pending));
    let first = at_hand.unwrap_or(0).saturating_sub(room / 2).min(list.tasks.len().saturating_sub(room));
    let columns = usize::from(pane.width().saturating_sub(TEXT));
    for (y, task) in (1..pane.height()).zip(list.tasks.iter().skip(first)) {
        let (line, look) = task_line(task);
        pane.put(TEXT, y, SafeText::line(&cut(&line, columns)).all(), theme.row(look));
    }
}
