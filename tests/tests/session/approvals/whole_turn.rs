//! Tests an approval for a whole turn: the turn's worker has exactly the access that the request showed, and nothing of
//! it remains afterwards.

use std::net::TcpListener;

use gate::approval::ApprovalSettings;
use ipc::rights::Network;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::approval::{ApprovalMode, ReviewDecision, ServerRequest, TurnAccess};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::{Value, json};
use supervisor::engine::driver::Turns;
use tests::replies::{calls, done};
use tests::session::{Beginning, FrontEnd};
use tests::tier;

use super::asking::{asks, command, decide, edit, logged, told};

/// Starts a session of several turns with the network on.
fn online(tier: ipc::confinement::Tier, replies: Vec<String>) -> FrontEnd {
    let approvals = ApprovalSettings { offers: false, ..ApprovalSettings::default() };
    let beginning = Beginning { net: Network::On, turns: Turns::Many, approvals, ..asks(tier) };
    FrontEnd::open_with(beginning, replies)
}

async fn act(front: &FrontEnd, action: AgentAction) {
    front.act(UserActionKind::Agent(action)).await;
}

/// Approves the next request for the whole turn. Returns the access that the request offered.
async fn allow(front: &mut FrontEnd) -> TurnAccess {
    let request = decide(front, ReviewDecision::ApprovedForTurn).await;
    front.until("rights changed for worker 2: net off").await;
    request.turn().cloned().unwrap()
}

/// Checks that a change is asked about again, and that the agent has its earlier access.
async fn asks_again(front: &mut FrontEnd, started: &Value) {
    front.prompt("again").await;
    let request = decide(front, ReviewDecision::DENIED).await;
    assert!(matches!(request, ServerRequest::ExecCommandApproval(_)), "{request:?}");
    front.until(" turn ").await;
    let changed = logged(front, "rights_changed");
    assert_eq!(&changed.last().unwrap()["rights"], started, "{changed:?}");
    assert_eq!(logged(front, "turn_allowance_ended"), [json!({"cause": "turn_ended"})]);
}

/// Returns the access with which the session started.
fn started(front: &FrontEnd) -> Value {
    logged(front, "worker_started")[0]["rights"].clone()
}

#[tokio::test]
async fn its_worker_writes_in_the_project_without_a_network_and_the_next_turn_asks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!(
        "if (exec 3<>/dev/tcp/127.0.0.1/{}) 2>/dev/null; then echo it-reached; else echo it-could-not; fi",
        listener.local_addr().unwrap().port()
    );
    for tier in tier::all() {
        let before = calls(&[("shell_exec", json!({"command": connect, "network": true}))]);
        let inside = command(&format!("echo x > b.txt; echo y > /etc/outside || echo kept-out; {connect}"));
        let replies = vec![before, edit(), inside, done(), command("echo z > c.txt"), done()];
        let mut front = online(tier, replies);
        front.prompt("go").await;
        front.until("call 1 completed").await;
        assert!(logged(&front, "tool_call_finished")[0]["content"].as_str().unwrap().contains("it-reached"));
        let started = started(&front);
        let access = allow(&mut front).await;
        assert_eq!(access.network_after, Network::On, "{tier}");
        assert!(access.write.contains(&(&front.world.project()).into()), "{tier}: {access:?}");
        front.until(" turn ").await;
        assert_eq!(
            (front.world.read("a.txt"), front.world.read("b.txt")),
            ("new\n".into(), "x\n".into()),
            "{tier}"
        );
        let result = logged(&front, "tool_call_finished")[2]["content"].to_string();
        assert!(result.contains("kept-out") && result.contains("it-could-not"), "{tier}: {result}");
        let changed = logged(&front, "rights_changed");
        assert_eq!(
            changed[0]["rights"],
            serde_json::to_value(&access.rights).unwrap(),
            "exactly what was said"
        );
        assert_eq!(logged(&front, "approval_requested").len(), 1, "{tier}");
        asks_again(&mut front, &started).await;
        assert!(!front.world.project().join("c.txt").exists(), "{tier}");
        act(&front, AgentAction::Quit).await;
        front.end().await;
    }
}

#[tokio::test]
async fn an_interrupted_turn_leaves_nothing_of_its_access() {
    for tier in tier::all() {
        let mut front = online(
            tier,
            vec![edit(), command("echo on > b.txt; echo it-runs; sleep 600"), command("rm b.txt"), done()],
        );
        front.prompt("go").await;
        let access = allow(&mut front).await;
        assert!(!access.confirms_commands);
        let started = started(&front);
        front.until("it-runs").await;
        act(&front, AgentAction::Interrupt).await;
        front.until(" turn ").await;
        asks_again(&mut front, &started).await;
        assert_eq!(front.world.read("b.txt"), "on\n", "{tier}");
        act(&front, AgentAction::Quit).await;
        front.end().await;
    }
}

#[tokio::test]
async fn a_turn_whose_worker_is_killed_leaves_nothing_of_its_access() {
    for tier in tier::all() {
        let replies = vec![
            edit(),
            command("echo on > b.txt; echo it-runs; sleep 600"),
            done(),
            command("rm b.txt"),
            done(),
        ];
        let mut front = online(tier, replies);
        front.prompt("go").await;
        allow(&mut front).await;
        let started = started(&front);
        front.until("it-runs").await;
        let pid = logged(&front, "rights_changed")[0]["pid"].as_i64().unwrap();
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
        front.until(" turn ").await;
        asks_again(&mut front, &started).await;
        assert_eq!(front.world.read("b.txt"), "on\n", "{tier}");
        act(&front, AgentAction::Quit).await;
        front.end().await;
    }
}

#[tokio::test]
async fn a_model_that_fails_ends_the_access_too() {
    let tier = tier::all()[0];
    let mut front = online(tier, vec![edit(), "event: nonsense\n\n".to_owned(), command("rm a.txt"), done()]);
    front.prompt("go").await;
    allow(&mut front).await;
    let started = started(&front);
    front.until(" turn ").await;
    asks_again(&mut front, &started).await;
    act(&front, AgentAction::Quit).await;
    front.end().await;
}

#[tokio::test]
async fn the_users_mode_ends_the_access_during_the_turn() {
    for tier in tier::all() {
        let replies =
            vec![edit(), command("echo on > b.txt; echo it-runs; sleep 600"), command("rm b.txt"), done()];
        let mut front = online(tier, replies);
        front.prompt("go").await;
        allow(&mut front).await;
        front.until("it-runs").await;
        act(&front, AgentAction::SetMode { mode: ApprovalMode::Ask }).await;
        // The same turn asks again. The running command was ended with the worker.
        let request = decide(&mut front, ReviewDecision::DENIED).await;
        assert!(matches!(request, ServerRequest::ExecCommandApproval(_)), "{tier}: {request:?}");
        assert!(request.turn().is_some(), "{tier}: a yes may be said again");
        front.until(" turn ").await;
        assert_eq!(front.world.read("b.txt"), "on\n", "{tier}");
        assert!(told(&front.provider).contains("access changed"), "{tier}");
        act(&front, AgentAction::Quit).await;
        front.end().await;
    }
}

#[tokio::test]
async fn what_the_host_runs_later_is_still_asked_about_or_denied() {
    for tier in tier::all() {
        let hook = calls(&[("write_file", json!({"path": ".git/hooks/pre-commit", "content": "evil\n"}))]);
        let config =
            calls(&[("write_file", json!({"path": ".git/config", "content": "[core]\n\tpager = evil\n"}))]);
        let by_command = command("echo evil > .git/hooks/pre-commit; echo evil > .vscode/tasks.json");
        let mut front = online(tier, vec![edit(), hook, config, by_command, done()]);
        front.world.file(".git/config", "[core]\n\tbare = false\n");
        std::fs::create_dir_all(front.world.project().join(".git/hooks")).unwrap();
        std::fs::create_dir_all(front.world.project().join(".vscode")).unwrap();
        front.prompt("go").await;
        allow(&mut front).await;
        let request = decide(&mut front, ReviewDecision::DENIED).await;
        let ServerRequest::ApplyPatchApproval(params) = &request else { panic!("{tier}: {request:?}") };
        assert!(params.turn.is_none() && params.file_changes.0.len() == 1, "{tier}");
        front.until(" turn ").await;
        let left = |name: &str| front.world.project().join(name).exists();
        assert!(!left(".git/hooks/pre-commit") && !left(".vscode/tasks.json"), "{tier}");
        assert_eq!(front.world.read(".git/config"), "[core]\n\tbare = false\n", "{tier}");
        act(&front, AgentAction::Quit).await;
        front.end().await;
    }
}
