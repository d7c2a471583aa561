//! Tests a session by its channels: actions in, events out in exact order. The model is a recording, the worker real.

use std::sync::Arc;

use ipc::id::ConversationId;
use ipc::rights::RightsChange;
use model::provider::{EventStream, ModelProvider, ModelRequest, ReplayProvider};
use protocol::frontend::{AgentAction, UserActionKind};
use supervisor::engine::driver::Turns;
use tests::again;
use tests::replies::{done, says, shell};
use tests::session::{Beginning, FrontEnd};

#[test]
fn all_of_it_holds_for_another_first_agent() {
    again::with_another_first_agent(module_path!());
}

#[tokio::test]
async fn one_turn_from_prompt_to_result() {
    let front = FrontEnd::open([shell("echo hello"), says("All is well.", "end_turn")]);
    front.prompt("look").await;
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "look"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    output of 1: "hello\n"
    7 call 1 completed
    8 request 2.1
    text "All"
    text " is"
    text " well."
    9 reply (end_turn)
    10 worker 1 ended: the run is over
    11 result 0 done
    = done
    "#);
}

#[tokio::test]
async fn an_interrupt_ends_a_command_and_the_turn() {
    let mut front = FrontEnd::open([shell("echo ready; exec sleep 1000"), done()]);
    front.prompt("wait").await;
    front.until("output").await;
    front.act(UserActionKind::Agent(AgentAction::Interrupt)).await;
    let (seen, world) = front.end_in_world().await;
    let call = world.log().into_iter().find(|event| event["type"] == "tool_call_finished").unwrap();
    let told = call["data"]["content"].as_str().unwrap();
    assert!(told.starts_with("interrupted by the user after ") && told.ends_with("\nready\n"), "{told}");
    assert!(call["data"]["duration_ms"].as_u64().unwrap() > 0);
    insta::assert_snapshot!(seen, @r#"
    1 worker 1 started
    2 context from environment
    3 user "wait"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    output of 1: "ready\n"
    7 call 1 interrupted
    8 worker 1 ended: the run is over
    9 result 130 interrupted
    = interrupted
    "#);
}

#[tokio::test]
async fn quitting_ends_a_session_that_works_and_one_that_rests() {
    let mut front = FrontEnd::open([shell("echo ready; exec sleep 1000"), done()]);
    front.prompt("wait").await;
    front.until("output").await;
    front.act(UserActionKind::Agent(AgentAction::Terminate)).await;
    let said = front.end().await;
    assert!(said.ends_with("result 143 terminated\n= terminated"), "{said}");
    let mut front = FrontEnd::open([done()]);
    front.until("worker 1 started").await;
    front.act(UserActionKind::Agent(AgentAction::Quit)).await;
    insta::assert_snapshot!(front.end().await, @r"
    1 worker 1 started
    2 worker 1 ended: the run is over
    3 result 0 closed
    = closed
    ");
    // Before there is a worker.
    let front = FrontEnd::open([done()]);
    front.act(UserActionKind::Agent(AgentAction::Quit)).await;
    assert_eq!(front.end().await, "1 result 0 closed\n= closed");
}

#[tokio::test]
async fn a_front_end_that_is_gone_ends_the_session() {
    let mut front = FrontEnd::open([done()]);
    front.actions = None;
    let said = front.end().await;
    assert!(said.ends_with("result 143 terminated\n= terminated"), "{said}");
}

#[tokio::test]
async fn actions_for_another_session_are_ignored() {
    let front = FrontEnd::open([done()]);
    let other = ConversationId("theirs".to_owned());
    front
        .act_in(
            &other,
            UserActionKind::Agent(AgentAction::Prompt { text: "not for you".to_owned(), images: vec![] }),
        )
        .await;
    front.act_in(&other, UserActionKind::Agent(AgentAction::Quit)).await;
    front.prompt("for you").await;
    let said = front.end().await;
    assert!(said.contains("user \"for you\"") && !said.contains("not for you"), "{said}");
    assert!(said.ends_with("= done"), "{said}");
}

#[tokio::test]
async fn words_that_come_meanwhile_join_the_next_message() {
    let mut front = FrontEnd::open([shell("echo ready; until [ -e go ]; do :; done"), done()]);
    front.prompt("first").await;
    front.until("output").await;
    front.prompt("second").await;
    front.prompt(" \n").await;
    // Actions are handled in order: after the notice, the earlier message has arrived.
    front.until("notice empty_message").await;
    front.world.file("go", "");
    let provider = Arc::clone(&front.provider);
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "first"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    output of 1: "ready\n"
    7 notice empty_message: an empty message was not sent
    8 call 1 completed
    9 user "second"
    10 request 2.1
    text "Done."
    11 reply (end_turn)
    12 worker 1 ended: the run is over
    13 result 0 done
    = done
    "#);
    assert_eq!(provider.requests()[1].messages.len(), 3);
}

#[tokio::test]
async fn a_provider_that_fails_ends_the_turn_with_its_code() {
    let front = FrontEnd::open(Vec::new());
    front.prompt("ask").await;
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "ask"
    4 request 1.1
    5 failed: invalid_response
    6 worker 1 ended: the run is over
    7 result 6 provider error
    = provider_error
    "#);
}

#[tokio::test]
async fn a_write_root_that_is_not_there_is_refused_in_words() {
    let mut front = FrontEnd::open([done()]);
    let path = "/nonexistent/x".into();
    front
        .act(UserActionKind::Agent(AgentAction::SetRights { change: RightsChange::AddWrite { path } }))
        .await;
    front.until("notice rights_refused: the access was not changed: /nonexistent/x does not exist").await;
    front.act(UserActionKind::Agent(AgentAction::Quit)).await;
    front.end().await;
}

/// Faulty model. It answers the first request and panics at the next.
struct Buggy(Arc<ReplayProvider>, fn() -> EventStream);

impl ModelProvider for Buggy {
    fn name(&self) -> &'static str {
        "buggy"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        if self.0.requests().is_empty() { self.0.stream(request) } else { (self.1)() }
    }
}

type Made = fn(Arc<ReplayProvider>) -> Arc<dyn ModelProvider>;

#[tokio::test]
async fn a_panic_ends_the_session_with_a_result_and_without_a_worker() {
    let models: [Made; 2] = [
        |recording| Arc::new(Buggy(recording, || panic!("a bug of {}", "ours"))),
        |recording| {
            Arc::new(Buggy(recording, || {
                Box::pin(futures_util::stream::poll_fn(|_| panic!("a bug of ours")))
            }))
        },
    ];
    for (turns, model) in [(Turns::One, models[0]), (Turns::Many, models[1])] {
        let beginning = Beginning { model, turns, ..Beginning::default() };
        let front = FrontEnd::open_with(beginning, [shell("echo hello")]);
        front.prompt("look").await;
        let (shown, world) = front.end_in_world().await;
        let (_, end) = shown.split_once("request 2.1\n").unwrap();
        assert_eq!(end, "9 worker 1 ended: the run is over\n10 result 1 internal error\n= internal_error");
        let last = world.log().pop().unwrap();
        assert_eq!(last["data"]["message"], "bailiwick has a bug and cannot continue: a bug of ours");
        assert_eq!(last["data"]["steps"], 1);
        tests::wait_until("everything is gone", || tests::marked(world.mark().as_bytes()).is_empty());
    }
}
