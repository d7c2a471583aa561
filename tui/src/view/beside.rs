use ratatui::layout::Rect;

use crate::model::{Model, tasks_beside, tree};

/// Areas of the pane beside the transcript. An area without content has a height of 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub agents: Rect,
    pub steps: Rect,
}

impl Beside {
    /// Divides the pane. The agents get half of the rows, and those that the steps do not need.
    pub(super) fn of(model: &Model, area: Rect) -> Self {
        let is_beside = tree::columns(model, model.size.0).is_some();
        let rows = |lines: usize| u16::try_from(lines + 1).unwrap_or(u16::MAX);
        let steps = model.plans.beside().filter(|_| is_beside);
        let tasks = tasks_beside(model).filter(|_| is_beside).map_or(0, |list| rows(list.tasks.len()));
        let steps = steps.map_or(tasks, |plan| rows(plan.lines(model.now).len()));
        let keys = u16::from(model.walks_tree());
        // A single agent needs no list: the status bar has all that its lines would say.
        let has_agents = keys > 0 || tree::listed(model).len() > 1;
        let agents = rows(tree::lines(model).len()).saturating_add(keys);
        let agents = if has_agents { fair(agents, steps, area.height) } else { 0 };
        let steps = if has_agents { steps.min(area.height - agents) } else { area.height };
        let agents = area.height - steps;
        let part = |y, height| Rect { y: area.y + y, height, ..area };
        Self { agents: part(0, agents), steps: part(agents, steps) }
    }
}

/// Returns the number of rows for an area that needs `wanted` rows if the other one needs `others` of `room` rows.
fn fair(wanted: u16, others: u16, room: u16) -> u16 {
    wanted.min(room.div_ceil(2).max(room.saturating_sub(others)))
}
