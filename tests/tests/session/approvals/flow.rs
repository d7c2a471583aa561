//! Tests approvals that are given, denied, timed out, interrupted or aborted: exact events, and contents of files.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use ipc::rights::{Network, RightsChange};
use protocol::approval::{ApprovalMode, FileChange, ReviewDecision, ServerRequest};
use protocol::frontend::{AgentAction, UserActionKind};
use tests::World;
use tests::replies::{done, model_of};
use tests::session::{Beginning, FrontEnd};
use tests::tier;

use super::asking::{answer, asks, asks_for, command, decide, edit, fitting, logged, told};
use supervisor::engine::driver::Turns;

#[tokio::test]
async fn an_approved_patch_changes_exactly_what_was_shown() {
    for tier in tier::all() {
        let mut front = FrontEnd::open_with(asks(tier), [edit(), done()]);
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        let project = front.world.project();
        assert_eq!(front.world.read("a.txt"), "old\n", "{tier}");
        let ServerRequest::ApplyPatchApproval(params) = &request else { panic!("{request:?}") };
        assert_eq!(params.grant.write, [(&project.join("a.txt")).into()], "{tier}");
        let change = &params.file_changes.0[&(&project.join("a.txt")).into()];
        let unified_diff = "@@ -1 +1 @@\n-old\n+new\n".to_owned();
        assert_eq!(*change, FileChange::Update { unified_diff, move_path: None });
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        front.until("result").await;
        assert_eq!(front.world.read("a.txt"), "new\n", "{tier}");
        let names: Vec<_> = fs::read_dir(project).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a.txt"], "{tier}: nothing else is there");
        let seen = front.end().await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(seen, @r#"
            1 worker 1 started
            2 context from environment
            3 user "go"
            4 request 1.1
            5 reply (tool_use)
            6 call 1: edit_file
            7 approval 1 of call 1
            asks 1: applyPatchApproval
            8 call 1 approved by User
            asks 1 no more
            9 worker 2 started
            10 worker 2 ended: exited
            11 call 1 completed
            12 request 2.1
            text "Done."
            13 reply (end_turn)
            14 worker 1 ended: the run is over
            15 result 0 done
            = done
            "#);
        }
    }
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_is_left_as_it_is() {
    for tier in tier::all() {
        let mut front = FrontEnd::open_with(asks(tier), [edit(), done()]);
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        front.world.file("a.txt", "old, but other\n");
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        front.until("call 1 failed").await;
        assert_eq!(front.world.read("a.txt"), "old, but other\n", "{tier}");
        front.until("result").await;
        assert!(told(&front.provider).contains("changed after it was read"), "{tier}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_new_file_is_made_in_the_nearest_directory_that_there_is() {
    for tier in tier::all() {
        let write = serde_json::json!({"path": "src/deep/new.txt", "content": "x\n"});
        let mut front =
            FrontEnd::open_with(asks(tier), [tests::replies::calls(&[("write_file", write)]), done()]);
        front.prompt("go").await;
        let request = decide(&mut front, ReviewDecision::Approved).await;
        let ServerRequest::ApplyPatchApproval(params) = &request else { panic!("{request:?}") };
        assert_eq!(params.grant.write, [(&front.world.project()).into()], "{tier}: what is granted is said");
        front.until("result").await;
        assert_eq!(front.world.read("src/deep/new.txt"), "x\n", "{tier}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_denial_goes_to_the_model_with_the_users_word() {
    let mut front = FrontEnd::open_with(asks(tier::all()[0]), [command("echo x > a.txt"), done()]);
    front.prompt("go").await;
    decide(&mut front, ReviewDecision::Denied { message: Some("not there".to_owned()) }).await;
    front.until("result 4 denied").await;
    assert_eq!(front.world.read("a.txt"), "old\n");
    let provider = Arc::clone(&front.provider);
    front.end().await;
    assert!(
        told(&provider).contains("The user denied this call. They say: not there"),
        "{}",
        told(&provider)
    );
}

#[tokio::test]
async fn an_abort_ends_the_turn_and_has_an_exit_code_of_its_own() {
    let mut front = FrontEnd::open_with(asks(tier::all()[0]), [command("echo x > a.txt"), done()]);
    front.prompt("go").await;
    decide(&mut front, ReviewDecision::Abort).await;
    front.until("result 4 aborted").await;
    assert_eq!(front.world.read("a.txt"), "old\n");
    assert_eq!(front.provider.requests().len(), 1);
    front.end().await;
}

#[tokio::test]
async fn nobody_in_time_is_a_denial() {
    for reply in [command("echo x > a.txt"), edit()] {
        let beginning = asks_for(tier::all()[0], Duration::from_millis(50));
        let mut front = FrontEnd::open_with(beginning, [reply, done()]);
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        front.until("call 1 denied by Deadline: nobody answered within 50ms").await;
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        front.until("result").await;
        assert_eq!(front.world.read("a.txt"), "old\n");
        assert!(logged(&front, "worker_started").iter().all(|worker| worker["one_shot"].is_null()));
        front.end().await;
    }
}

#[tokio::test]
async fn an_interrupt_takes_the_question_back() {
    let mut front = FrontEnd::open_with(asks(tier::all()[0]), [command("echo x > a.txt"), done()]);
    front.prompt("go").await;
    front.asked().await;
    front.act(UserActionKind::Agent(AgentAction::Interrupt)).await;
    let seen = front.end().await;
    insta::assert_snapshot!(seen, @r#"
    1 worker 1 started
    2 context from environment
    3 user "go"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: shell_exec
    7 approval 1 of call 1
    asks 1: execCommandApproval
    8 call 1 denied by Interrupted: the turn was ended
    asks 1 no more
    9 call 1 interrupted
    10 worker 1 ended: the run is over
    11 result 130 interrupted
    = interrupted
    "#);
}

#[tokio::test]
async fn an_interrupt_ends_what_was_approved_with_everything_that_it_started() {
    for tier in tier::all() {
        let text = "setsid sleep 999 & echo ready; sleep 999";
        let mut front = FrontEnd::open_with(asks(tier), [command(text), done()]);
        front.prompt("go").await;
        decide(&mut front, ReviewDecision::Approved).await;
        front.until("output of 1: \"ready").await;
        front.act(UserActionKind::Agent(AgentAction::Interrupt)).await;
        front.until("result 130").await;
        let told = logged(&front, "tool_call_finished")[0]["content"].to_string();
        assert!(told.contains("interrupted by the user after ") && told.contains(r"\nready"), "{told}");
        let left = tests::marked(front.world.mark().as_bytes());
        assert!(left.is_empty(), "{tier}: {left:?}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_front_end_that_is_gone_denies_and_ends() {
    let mut front = FrontEnd::open_with(asks(tier::all()[0]), [command("echo x > a.txt"), done()]);
    front.prompt("go").await;
    front.asked().await;
    front.actions = None;
    front.until("call 1 denied by NoFrontEnd: the front end has disconnected").await;
    front.until("result 143").await;
    assert_eq!(front.world.read("a.txt"), "old\n");
    front.end().await;
}

#[tokio::test]
async fn a_change_of_rights_takes_back_what_is_asked_and_ends_what_was_approved() {
    let change = || RightsChange::Network { net: Network::On, reach: None };
    for tier in tier::all() {
        let mut front = FrontEnd::open_with(asks(tier), [command("echo x > a.txt"), done()]);
        front.prompt("go").await;
        let (id, request) = front.asked().await;
        front.act(UserActionKind::Agent(AgentAction::SetRights { change: change() })).await;
        front.until("call 1 denied by Interrupted: the access was changed").await;
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        front.until("result").await;
        assert_eq!(front.world.read("a.txt"), "old\n", "{tier}");
        assert!(told(&front.provider).contains("interrupted: the access changed"), "{tier}");
        front.end().await;

        let mut front = FrontEnd::open_with(asks(tier), [command("echo ready; exec sleep 999"), done()]);
        front.prompt("go").await;
        decide(&mut front, ReviewDecision::Approved).await;
        front.until("output of 1: \"ready").await;
        let shot = logged(&front, "worker_started").pop().unwrap()["pid"].as_u64().unwrap();
        front.act(UserActionKind::Agent(AgentAction::SetRights { change: change() })).await;
        front.until("rights changed").await;
        assert!(!tests::alive(u32::try_from(shot).unwrap()), "{tier}: it is gone before the answer");
        front.until("result").await;
        front.end().await;
    }
}

#[tokio::test]
async fn the_mode_changes_the_rights_and_the_guard_comes_with_them() {
    for tier in tier::all() {
        let hook = "mkdir -p .vscode && echo {} > .vscode/tasks.json; echo made > made.txt";
        let beginning = Beginning { turns: Turns::Many, ..asks(tier) };
        let replies = [tests::replies::shell(hook), done(), tests::replies::shell(hook), done()];
        let mut front = FrontEnd::open_with(beginning, replies);
        front.prompt("go").await;
        front.until("turn").await;
        assert!(!front.world.project().join("made.txt").exists(), "{tier}");
        front.act(UserActionKind::Agent(AgentAction::SetMode { mode: ApprovalMode::Auto })).await;
        front.until("mode auto").await;
        front.until("rights changed").await;
        front.prompt("again").await;
        front.until("turn done").await;
        assert_eq!(front.world.read("made.txt"), "made\n", "{tier}");
        assert!(!front.world.project().join(".vscode/tasks.json").exists(), "{tier}: it was put back");
        front.act(UserActionKind::Agent(AgentAction::SetMode { mode: ApprovalMode::Ask })).await;
        front.until("mode ask").await;
        front.act(UserActionKind::Agent(AgentAction::Quit)).await;
        front.until("result 0 closed").await;
        let result = logged(&front, "result").pop().unwrap();
        assert_eq!(result["steps"], 4, "{tier}: of the whole session");
        front.end().await;
    }
}

#[test]
fn exec_in_mode_ask_with_nobody_to_answer_denies_at_once_and_says_what_to_use() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user).in_tier(tier);
        world.file("a.txt", "old\n");
        let server = model_of([edit(), command("echo x > a.txt"), done()]);
        let done = world.run(&server, &["--mode", "ask"]).expect(4);
        let answers = done.events_of("approval_answered");
        assert_eq!(answers.len(), 2, "{answers:?}");
        for answer in answers {
            assert_eq!((&answer["by"], &answer["id"]), (&"no_front_end".into(), &serde_json::Value::Null));
            assert!(answer["cause"].as_str().unwrap().contains("--approval-socket"), "{answer}");
        }
        assert_eq!(world.read("a.txt"), "old\n");
    }
}

#[tokio::test]
async fn all_changes_of_a_reply_are_approved_as_one_and_each_is_compared_first() {
    for tier in tier::all() {
        let new = |path: &str| ("write_file", serde_json::json!({"path": path, "content": "x\n"}));
        let edit =
            ("edit_file", serde_json::json!({"path": "a.txt", "old_string": "old", "new_string": "new"}));
        let reply = tests::replies::calls(&[edit, new("b.txt"), new("c.txt")]);
        let mut front = FrontEnd::open_with(asks(tier), [reply, done()]);
        front.prompt("go").await;
        let (first, _) = front.asked().await;
        front.act(UserActionKind::Agent(AgentAction::AskTogether { id: first })).await;
        let (id, request) = front.asked().await;
        let ServerRequest::ApplyPatchApproval(params) = &request else { panic!("{request:?}") };
        assert_eq!((params.file_changes.0.len(), params.with.len(), params.more), (3, 2, 0), "{tier}");
        assert!(!front.world.project().join("b.txt").exists(), "{tier}");
        // Another process writes one of the files first.
        front.world.file("c.txt", "theirs\n");
        answer(&front, id, fitting(&request, ReviewDecision::Approved)).await;
        front.until("result").await;
        assert_eq!((front.world.read("a.txt"), front.world.read("b.txt")), ("new\n".into(), "x\n".into()));
        assert_eq!(front.world.read("c.txt"), "theirs\n", "{tier}");
        let seen = front.end().await;
        assert!(seen.contains("call 2 completed") && seen.contains("call 3 failed"), "{tier}: {seen}");
    }
}
