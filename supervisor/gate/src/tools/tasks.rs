//! The tool with which an agent keeps a list of its tasks. The model reads the comments of the fields.

use protocol::event::{ListedTask, TaskState, UPDATE_TASKS};
use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::BadArgument;
use super::typed::{Arguments, Typed};
use super::{Invocation, Tool};

/// Maximum number of tasks of a list.
const MOST_TASKS: usize = 50;

/// Maximum number of characters of a task.
const LONGEST_TASK: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskList(pub Vec<ListedTask>);

pub fn task_list() -> Box<dyn Tool> {
    Box::new(Typed::<UpdateTasks>::new())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateTasks {
    /// The whole list, in order.
    #[schemars(length(max = 50))]
    tasks: Vec<Task>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Task {
    #[schemars(length(max = 200))]
    text: String,
    state: State,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum State {
    Pending,
    InProgress,
    Done,
}

impl Arguments for UpdateTasks {
    type Call = TaskList;

    const NAME: &'static str = UPDATE_TASKS;
    const DESCRIPTION: &'static str = "Replaces the list of your tasks, which the user sees. For work of three or more steps \
        alone: list them at the start, and call this beside other calls when one begins or is done. At most one is in_progress.";

    fn into_call(self) -> Result<TaskList, BadArgument> {
        let Self { tasks } = self;
        if tasks.len() > MOST_TASKS {
            return Err(("tasks", format!("got {} tasks, expected at most {MOST_TASKS}", tasks.len())));
        }
        let at_once = tasks.iter().filter(|task| matches!(task.state, State::InProgress)).count();
        if at_once > 1 {
            return Err(("tasks", format!("got {at_once} tasks in_progress, expected at most one")));
        }
        tasks
            .into_iter()
            .zip(1..)
            .map(|(task, number)| listed(task, number))
            .collect::<Result<_, _>>()
            .map(TaskList)
    }
}

fn listed(task: Task, number: usize) -> Result<ListedTask, BadArgument> {
    let words =
        task.text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let text = words.collect::<Vec<_>>().join(" ");
    let length = text.chars().count();
    if !(1..=LONGEST_TASK).contains(&length) {
        let fault =
            format!("the text of task {number} has {length} characters, expected 1 to {LONGEST_TASK}");
        return Err(("tasks", fault));
    }
    let state = match task.state {
        State::Pending => TaskState::Pending,
        State::InProgress => TaskState::InProgress,
        State::Done => TaskState::Done,
    };
    Ok(ListedTask { text, state })
}

impl From<TaskList> for Invocation {
    fn from(list: TaskList) -> Self {
        Self::Tasks(list)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(tasks: &serde_json::Value) -> Result<Vec<ListedTask>, String> {
        match task_list().parse(&json!({ "tasks": tasks }).to_string()) {
            Ok(Invocation::Tasks(TaskList(tasks))) => Ok(tasks),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_list_is_bounded_and_each_task_is_one_line() {
        let tasks = parsed(&json!([{ "text": " a\n\tb\u{1b}[2J ", "state": "in_progress" }])).unwrap();
        assert_eq!(tasks, [ListedTask { text: "a b [2J".to_owned(), state: TaskState::InProgress }]);
        assert_eq!(parsed(&json!([])), Ok(vec![]));
        let many = |count: usize, state: &str| json!(vec![json!({ "text": "x", "state": state }); count]);
        assert_eq!(parsed(&many(MOST_TASKS, "done")).unwrap().len(), MOST_TASKS);
        let long = |length: usize| json!([{ "text": "é".repeat(length), "state": "pending" }]);
        assert!(parsed(&long(LONGEST_TASK)).is_ok());
        for (tasks, part) in [
            (many(MOST_TASKS + 1, "done"), "got 51 tasks, expected at most 50"),
            (many(2, "in_progress"), "got 2 tasks in_progress, expected at most one"),
            (long(LONGEST_TASK + 1), "the text of task 1 has 201 characters"),
            (
                json!([{ "text": "a", "state": "done" }, { "text": " \u{7} ", "state": "done" }]),
                "task 2 has 0",
            ),
            (json!([{ "text": "a", "state": "finished" }]), "finished"),
            (json!([{ "text": "a", "state": "done", "note": "" }]), "note"),
        ] {
            let error = parsed(&tasks).unwrap_err();
            assert!(error.contains(UPDATE_TASKS) && error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_definition_is_cheap() {
        let tool = task_list();
        let definition = tool.definition();
        let size = definition.description.len() + definition.input_schema.get().len();
        assert!(size < 700, "{size} bytes: {}", definition.input_schema.get());
    }
}
