//! List of tasks that an agent keeps, and the lines that show it.

use protocol::event::{ListedTask, TaskState, TasksUpdated};

use super::{Look, Mode, Model};

/// Minimum height of a screen with a row for the list.
const ROW: u16 = 14;

impl Model {
    /// `None` if all tasks are done.
    pub(crate) fn open_tasks(&self) -> Option<&TasksUpdated> {
        self.agents.shown().tasks.as_ref().filter(|list| list.is_open())
    }

    pub(crate) fn tasks_beside(&self) -> Option<&TasksUpdated> {
        self.open_tasks().filter(|_| self.plans.beside().is_none())
    }

    pub(crate) fn tasks_in_row(&self, (width, height): (u16, u16)) -> Option<&TasksUpdated> {
        let is_beside = self.tree_columns(width).is_some() && self.tasks_beside().is_some();
        self.open_tasks().filter(|_| !is_beside && height >= ROW && self.mode != Mode::Page)
    }
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
