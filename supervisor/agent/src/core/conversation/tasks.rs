//! The list of tasks that the agent keeps for the person: it changes nothing else.

use ipc::id::CallId;
use protocol::event::{EventKind, ListedTask, TaskState, TasksUpdated};

use crate::core::outbox::Outbox;

/// The list, as the model or a rewind left it.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    list: Vec<ListedTask>,
}

impl Tasks {
    /// The list after these events.
    pub(super) fn after<'a>(events: impl Iterator<Item = &'a EventKind>) -> Self {
        let list = events.fold(Vec::new(), |list, kind| match kind {
            EventKind::TasksUpdated(updated) => updated.tasks.clone(),
            _ => list,
        });
        Self { list }
    }

    /// Replaces the list. Returns the event, if that changed anything.
    pub(super) fn replace(&mut self, call: Option<CallId>, tasks: Vec<ListedTask>) -> Option<EventKind> {
        if self.list == tasks {
            return None;
        }
        self.list.clone_from(&tasks);
        Some(EventKind::TasksUpdated(TasksUpdated { call, tasks }))
    }

    /// Replaces the list by another one. Returns the event, if that changed anything.
    pub(super) fn replace_by(&mut self, other: Self) -> Option<EventKind> {
        self.replace(None, other.list)
    }

    /// Empties the list of a conversation that is over.
    pub(super) fn forget(&mut self, out: &mut Outbox) {
        if let Some(changed) = self.replace(None, Vec::new()) {
            out.log(changed);
        }
    }

    /// Returns the open list as text for a new context, which has none of the calls that made it.
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
