//! Tests which calls an approval for the whole session covers.

use ipc::id::GrantId;
use protocol::approval::{ReviewDecision, SessionScope};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::json;
use supervisor::engine::driver::Turns;
use tests::replies::{calls, done, shell};
use tests::session::{Beginning, FrontEnd};
use tests::tier;

use super::asking::{asks, command, decide, edit, for_session, logged, told};

fn words(text: &str) -> SessionScope {
    SessionScope::CommandPrefix(text.split(' ').map(str::to_owned).collect())
}

#[tokio::test]
async fn twenty_five_runs_of_an_approved_prefix_ask_once() {
    for tier in tier::all() {
        let runs = (0..25).map(|run| command(&format!("touch made-{run}"))).chain([done()]);
        let mut front = FrontEnd::open_with(asks(tier), runs);
        front.prompt("go").await;
        decide(&mut front, for_session(words("touch"))).await;
        front.until("result").await;
        assert_eq!(logged(&front, "approval_requested").len(), 1, "{tier}");
        assert_eq!(logged(&front, "approval_answered").len(), 25, "{tier}");
        let names = (0..25).filter(|run| front.world.project().join(format!("made-{run}")).exists());
        assert_eq!(names.count(), 25, "{tier}");
        front.end().await;
    }
}

#[tokio::test]
async fn the_same_prefix_with_anything_else_asks_again() {
    let others = [
        "touch x; curl y | sh",
        "touch $(id)",
        "touch x && id",
        "touch x\nid",
        "A=b touch x",
        "touch x | id",
        "touch x & id",
        "touch `id`",
        "touch x > y",
        "touchx",
    ];
    let replies = [command("touch a.txt")].into_iter().chain(others.iter().map(|other| command(other)));
    let mut front = FrontEnd::open_with(asks(tier::all()[0]), replies.chain([done()]));
    front.prompt("go").await;
    decide(&mut front, for_session(words("touch"))).await;
    for other in others {
        let request = decide(&mut front, ReviewDecision::DENIED).await;
        let shown = serde_json::to_value(&request).unwrap();
        assert_eq!(shown["params"]["command"], json!(["bash", "-c", other]));
    }
    front.until("result").await;
    front.end().await;
}

#[tokio::test]
async fn a_revoked_approval_counts_no_more() {
    let beginning = Beginning { turns: Turns::Many, ..asks(tier::all()[0]) };
    let replies = [command("touch b"), done(), command("touch c"), done()];
    let mut front = FrontEnd::open_with(beginning, replies);
    front.prompt("go").await;
    decide(&mut front, for_session(words("touch"))).await;
    front.until("turn done").await;
    front.act(UserActionKind::Agent(AgentAction::RevokeGrant { id: GrantId(1) })).await;
    front.until("grant 1 revoked").await;
    front.prompt("again").await;
    decide(&mut front, ReviewDecision::DENIED).await;
    front.until("turn denied").await;
    assert!(front.world.project().join("b").exists() && !front.world.project().join("c").exists());
    front.act(UserActionKind::Agent(AgentAction::Quit)).await;
    front.end().await;
}

#[tokio::test]
async fn a_pattern_covers_its_files_and_no_other() {
    for tier in tier::all() {
        let write = |path: &str| calls(&[("write_file", json!({"path": path, "content": "x\n"}))]);
        let replies = [write("a.txt"), write("b.txt"), write("b.rs"), done()];
        let mut front = FrontEnd::open_with(asks(tier), replies);
        front.prompt("go").await;
        decide(&mut front, for_session(SessionScope::PathPattern("*.txt".to_owned()))).await;
        decide(&mut front, ReviewDecision::DENIED).await;
        front.until("result").await;
        assert_eq!(
            (front.world.read("a.txt"), front.world.read("b.txt")),
            ("x\n".to_owned(), "x\n".to_owned())
        );
        assert!(!front.world.project().join("b.rs").exists(), "{tier}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_write_root_is_a_new_generation_that_comes_when_the_call_is_over() {
    for tier in tier::all() {
        let hook = "mkdir -p .vscode; echo {} > .vscode/tasks.json; echo made > made.txt";
        let mut front = FrontEnd::open_with(asks(tier), [edit(), shell(hook), done()]);
        front.prompt("go").await;
        decide(&mut front, for_session(SessionScope::GrantRoot)).await;
        front.until("call 1 completed").await;
        front.until("rights changed").await;
        front.until("call 2 completed").await;
        front.until("result").await;
        assert_eq!(front.world.read("a.txt"), "new\n", "{tier}");
        assert_eq!(front.world.read("made.txt"), "made\n", "{tier}");
        assert!(!front.world.project().join(".vscode/tasks.json").exists(), "{tier}: it is guarded");
        assert!(told(&front.provider).contains("Changed and restored"), "{tier}");
        front.end().await;
    }
}
