//! The parts beside the transcript.

use ratatui::layout::Rect;

use crate::model::Model;

/// The parts next to the transcript, from top to bottom. An empty part has no rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub agents: Rect,
    pub steps: Rect,
    pub changes: Rect,
}

impl Beside {
    /// The parts of an area. Each has half of the rows that those above it leave, or more where the others need less; the
    /// agents also have the rows that nobody needs.
    pub(super) fn of(model: &Model, area: Rect) -> Self {
        let is_beside = model.tree_columns(model.size.0).is_some();
        let rows = |lines: usize| u16::try_from(lines + 1).unwrap_or(u16::MAX);
        let steps = model.plans.beside().filter(|_| is_beside);
        let steps = steps.map_or(0, |plan| rows(plan.lines(model.now).len()));
        let (files, left_out) = model.changes.files();
        let changes = files.len() + usize::from(left_out > 0);
        let changes = if is_beside && changes > 0 { rows(changes) } else { 0 };
        let keys = u16::from(model.walks_tree());
        let agents = rows(model.tree_lines().len()).saturating_add(keys);
        let agents = fair(agents, steps.saturating_add(changes), area.height);
        let steps = fair(steps, changes, area.height - agents);
        let changes = changes.min(area.height - agents - steps);
        let agents = area.height - steps - changes;
        let part = |y, height| Rect { y: area.y + y, height, ..area };
        Self { agents: part(0, agents), steps: part(agents, steps), changes: part(agents + steps, changes) }
    }
}

/// The rows of a part that wants some, when others want some too.
fn fair(wanted: u16, others: u16, room: u16) -> u16 {
    wanted.min(room.div_ceil(2).max(room.saturating_sub(others)))
}
