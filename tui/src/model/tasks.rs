//! List of tasks that an agent keeps for the person, and its display.

use protocol::event::{ListedTask, TaskState, TasksUpdated};

use super::{Look, Mode, Model, tree};

/// Minimum height of a screen on which a row shows the task list.
const ROW: u16 = 14;

/// Returns the task list of the shown agent; `None` if there is none or all tasks are done.
pub(crate) fn open_tasks(model: &Model) -> Option<&TasksUpdated> {
    model.agents.shown().tasks.as_ref().filter(|list| list.is_open())
}

/// Returns the task list for the pane beside the transcript; `None` if the pane shows the steps of a plan instead.
pub(crate) fn tasks_beside(model: &Model) -> Option<&TasksUpdated> {
    open_tasks(model).filter(|_| model.plans.beside().is_none())
}

/// True if one row below the transcript shows the tasks, on a screen of this size.
pub(super) fn has_row(model: &Model, (width, height): (u16, u16)) -> bool {
    let is_beside = tree::columns(model, width).is_some() && tasks_beside(model).is_some();
    open_tasks(model).is_some() && !is_beside && height >= ROW && model.mode != Mode::Page
}

/// Returns the heading of the list: `tasks · 2 of 5 done`.
pub(crate) fn counted_tasks(list: &TasksUpdated) -> String {
    let done = list.tasks.iter().filter(|task| task.state == TaskState::Done).count();
    format!("tasks · {done} of {} done", list.tasks.len())
}

pub(crate) fn task_line(task: &ListedTask) -> (String, Look) {
    let (mark, look) = match task.state {
        TaskState::Pending => ("·", Look::Tool),
        TaskState::InProgress => ("▸", Look::Heading),
        TaskState::Done => ("✓", Look::Turn),
    };
    (format!("{mark} {}", task.text), look)
}
