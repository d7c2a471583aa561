//! The list of tasks that the agent keeps for the person: it changes nothing else.

use gate::tools::TaskList;
use ipc::id::CallId;
use protocol::event::{EventKind, ListedTask, TaskState, TasksUpdated};

use super::Agent;
use super::calls::CallResult;

impl Agent {
    /// Replaces the list, which needs no approval.
    pub(super) fn update_tasks(&mut self, call: CallId, TaskList(tasks): TaskList) {
        let done = tasks.iter().filter(|task| task.state == TaskState::Done).count();
        let told = format!("The list has {} tasks, {done} of them done.", tasks.len());
        self.set_tasks(Some(call), tasks);
        self.close_at_once(call, CallResult::answered(told));
    }

    /// Empties the list of a conversation that is over.
    pub(super) fn forget_tasks(&mut self) {
        self.set_tasks(None, Vec::new());
    }

    fn set_tasks(&mut self, call: Option<CallId>, tasks: Vec<ListedTask>) {
        if self.tasks != tasks {
            self.tasks.clone_from(&tasks);
            self.log(EventKind::TasksUpdated(TasksUpdated { call, tasks }));
        }
    }

    /// The open list as text for a new context, which has none of the calls that made it.
    pub(super) fn told_tasks(&self) -> Option<String> {
        let list = TasksUpdated { call: None, tasks: self.tasks.clone() };
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

/// The list after these events.
pub(super) fn after<'a>(events: impl Iterator<Item = &'a EventKind>) -> Vec<ListedTask> {
    events.fold(Vec::new(), |tasks, kind| match kind {
        EventKind::TasksUpdated(updated) => updated.tasks.clone(),
        _ => tasks,
    })
}
