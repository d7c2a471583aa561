use ipc::id::CallId;
use protocol::event::{EventKind, ListedTask, TaskState, TasksUpdated};

use crate::core::outbox::Outbox;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    list: Vec<ListedTask>,
}

impl Tasks {
    /// Returns the list of tasks that results from these events.
    pub(super) fn after<'a>(events: impl Iterator<Item = &'a EventKind>) -> Self {
        let list = events.fold(Vec::new(), |list, kind| match kind {
            EventKind::TasksUpdated(updated) => updated.tasks.clone(),
            _ => list,
        });
        Self { list }
    }

    /// Sets the list. Returns the event for the log; `None` if the list is the same as before.
    pub(super) fn replace(&mut self, call: Option<CallId>, tasks: Vec<ListedTask>) -> Option<EventKind> {
        if self.list == tasks {
            return None;
        }
        self.list.clone_from(&tasks);
        Some(EventKind::TasksUpdated(TasksUpdated { call, tasks }))
    }

    pub(super) fn replace_by(&mut self, other: Self) -> Option<EventKind> {
        self.replace(None, other.list)
    }

    pub(super) fn forget(&mut self, out: &mut Outbox) {
        if let Some(changed) = self.replace(None, Vec::new()) {
            out.log(changed);
        }
    }

    /// Returns the open tasks as text for a new context, because the new context lacks the calls that set the list.
    /// `None` if no task is open.
    pub(super) fn told(&self) -> Option<String> {
        let list = TasksUpdated { call: None, tasks: self.list.clone() };
        list.is_open().then(|| {
            let line = |task: &ListedTask| {
                let state = match task.state {
                    TaskState::Pending => "pending",
                    TaskState::InProgress => "in_progress",
                    TaskState::Done => "done",
                };
                format!("- {state}: {}\n", task.text)
            };
            let lines: String = list.tasks.iter().map(line).collect();
            format!("<tasks>\nYour list of tasks, as update_tasks has it:\n{lines}</tasks>")
        })
    }
}
