use std::sync::Arc;

use gate::activity::Activity;
use gate::tools::{Registry, task_list};
use ipc::id::EventId;
use protocol::event::{EventKind, ListedTask, ObservedBy, SessionEvent, TaskState, TasksUpdated};

use super::script::{Script, call, config, read, text};
use crate::conversation::StopReason;
use crate::core::{Agent, AgentConfig, Effect};

fn with_tasks() -> AgentConfig {
    let tools = Registry::for_activity(Activity::Execute).extended(vec![task_list()]);
    AgentConfig { tools: Arc::new(tools), ..config() }
}

fn update(id: &str, states: &[&str]) -> crate::conversation::AssistantBlock {
    let tasks: Vec<_> = states
        .iter()
        .enumerate()
        .map(|(at, state)| serde_json::json!({ "text": format!("task {at}"), "state": state }))
        .collect();
    call(id, "update_tasks", &serde_json::json!({ "tasks": tasks }).to_string())
}

fn lists(script: &Script) -> Vec<String> {
    let lists = script.effects.iter().filter_map(|effect| match effect {
        Effect::Log { kind: EventKind::TasksUpdated(updated), .. } => Some(updated.to_string()),
        _ => None,
    });
    lists.collect()
}

#[test]
fn a_list_is_logged_when_it_changes_and_needs_neither_worker_nor_approval() {
    let mut script = Script::with(with_tasks());
    script.user("work");
    script.reply(
        1,
        &[update("a", &["in_progress", "pending"]), update("b", &["in_progress", "pending"])],
        StopReason::ToolUse,
    );
    assert_eq!(lists(&script), ["tasks 0/2 · now: task 0"]);
    assert!(
        script.last_messages().contains("The list has 2 tasks, 0 of them done."),
        "{}",
        script.last_messages()
    );
    // While a worker works on another call, the list is answered at once.
    script.reply(2, &[read("c", "a"), update("d", &["done", "in_progress"])], StopReason::ToolUse);
    assert_eq!(lists(&script).last().unwrap(), "tasks 1/2 · now: task 1");
    assert_eq!(script.requests().len(), 2, "the other call is still open");
}

#[test]
fn a_list_beyond_its_bounds_changes_nothing_and_the_model_is_told_why() {
    let mut script = Script::with(with_tasks());
    script.user("work");
    script.reply(1, &[update("a", &["in_progress", "in_progress"])], StopReason::ToolUse);
    assert_eq!(lists(&script), Vec::<String>::new());
    assert!(script.last_messages().contains("expected at most one"), "{}", script.last_messages());
}

#[test]
fn an_agent_that_goes_on_or_is_taken_back_has_the_list_of_that_place() {
    let event = |id: u64, kind: EventKind| SessionEvent {
        id: EventId(id),
        parent: None,
        time_ms: 0,
        session: "s".into(),
        agent: ipc::id::AgentId::root(),
        parent_agent: None,
        observed_by: ObservedBy::Supervisor,
        kind,
    };
    let list = |done: bool| {
        let state = if done { TaskState::Done } else { TaskState::Pending };
        let tasks = vec![ListedTask { text: "one".to_owned(), state }];
        EventKind::TasksUpdated(TasksUpdated { call: None, tasks })
    };
    let said = |text: &str| EventKind::UserMessage { text: text.to_owned(), images: vec![] };
    let past = [event(1, said("a")), event(2, list(false)), event(3, said("b")), event(4, list(true))];
    let mut agent = Agent::new(with_tasks()).restored(&past, false);
    assert_eq!(agent.rewind(Some(&past), "back".to_owned()), None, "nothing was restored");
    let changed = agent.rewind(Some(&past[..3]), "back".to_owned()).unwrap();
    assert_eq!(changed, list(false));
    assert_eq!(agent.rewind(None, "files".to_owned()), None);
}

#[test]
fn an_empty_conversation_has_no_list() {
    let mut script = Script::with(with_tasks());
    script.user("work");
    script.reply(1, &[update("a", &["pending"])], StopReason::ToolUse);
    script.reply(2, &[text("done")], StopReason::EndTurn);
    script.input(crate::core::Input::Op(protocol::frontend::Op::Act(protocol::frontend::AgentAction::Clear)));
    assert_eq!(lists(&script), ["tasks 0/1 · next: task 0", "no tasks"]);
}
