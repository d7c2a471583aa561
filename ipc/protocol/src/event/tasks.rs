//! The list of tasks that an agent keeps in ordinary turns.

use std::fmt;

use ipc::id::CallId;
use serde::{Deserialize, Serialize};

/// The name of the tool that changes the list. Front ends show the list instead of the tool's calls.
pub const UPDATE_TASKS: &str = "update_tasks";

/// A changed list of an agent's tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TasksUpdated {
    /// The call that changed the list; absent if a rewind or a cleared conversation did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The tasks, in their order; empty if there is no list.
    pub tasks: Vec<ListedTask>,
}

/// A task of the list that an agent keeps of its own work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ListedTask {
    /// The model's description of the task.
    pub text: String,
    /// Progress of the task, as the model claims it.
    pub state: TaskState,
}

/// Progress of a task, as the model claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The task is not begun.
    Pending,
    /// The agent works on the task.
    InProgress,
    /// The task is done.
    Done,
}

impl TasksUpdated {
    /// True if a task of the list is not done.
    pub fn is_open(&self) -> bool {
        self.tasks.iter().any(|task| task.state != TaskState::Done)
    }
}

/// Displays one line: `tasks 2/5 · now: Keep the line of each token`. The name of the task is the model's text.
impl fmt::Display for TasksUpdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tasks.is_empty() {
            return f.write_str("no tasks");
        }
        let with = |state| self.tasks.iter().filter(move |task| task.state == state);
        write!(f, "tasks {}/{}", with(TaskState::Done).count(), self.tasks.len())?;
        match (with(TaskState::InProgress).next(), with(TaskState::Pending).next()) {
            (Some(task), _) => write!(f, " · now: {}", task.text),
            (None, Some(task)) => write!(f, " · next: {}", task.text),
            (None, None) => f.write_str(" · all done"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(states: &[TaskState]) -> TasksUpdated {
        let task =
            |(at, state): (usize, &TaskState)| ListedTask { text: format!("task {at}"), state: *state };
        TasksUpdated { call: None, tasks: states.iter().enumerate().map(task).collect() }
    }

    #[test]
    fn a_list_is_one_line_with_the_task_at_hand() {
        use TaskState::{Done, InProgress, Pending};
        for (states, line, is_open) in [
            (&[][..], "no tasks", false),
            (&[Pending, Pending], "tasks 0/2 · next: task 0", true),
            (&[Done, InProgress, Pending], "tasks 1/3 · now: task 1", true),
            (&[Done, Done], "tasks 2/2 · all done", false),
        ] {
            assert_eq!((list(states).to_string().as_str(), list(states).is_open()), (line, is_open));
        }
    }
}
