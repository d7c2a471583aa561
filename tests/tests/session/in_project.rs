//! Tests an approval for the project: its later sessions run the command without a question, and other projects ask.

use std::fs;

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::served::Served;
use tests::{User, World, tier};

const MINE: &str = "# mine\nmode = \"ask\" # always\n";

fn touch() -> String {
    calls(&[("shell_exec", json!({"command": "touch made", "access": "write"}))])
}

/// Approves the next request for the project, and returns the request.
fn always(served: &mut Served) -> Value {
    let asked = served.asked("execCommandApproval");
    let params = &asked["params"];
    let decision = json!({
        "decision": "approved_for_session", "digest": params["digest"],
        "scope": {"type": "command_prefixes_in_project", "value": params["in_project"]["prefixes"]},
    });
    served.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": decision}).to_string());
    asked
}

#[test]
fn later_sessions_of_the_project_run_the_command_unasked_and_other_projects_ask() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        world.configure(MINE);
        let config = world.own().join("config/config.toml");
        let made = world.project().join("made");
        let model = model_of([touch(), touch(), done()]);
        let mut served = Served::greeted(&world);
        let session = served.converse(&world.project(), &model.base_url(), "ask");
        served.call("sendUserMessage", json!({"conversation_id": session, "text": "go"}));
        let asked = always(&mut served);
        let file = &asked["params"]["in_project"]["file"];
        assert_eq!(file, &json!(config), "{tier}: {asked}");
        served.until("event/toolCallFinished");
        assert!(made.exists(), "{tier}");
        let again = served.until("event/approvalAnswered").to_string();
        assert!(again.contains("session_grant"), "{tier}: {again}");
        served.until("event/turnFinished");
        served.end();
        let kept = fs::read_to_string(&config).unwrap();
        let table =
            format!("[project.\"{}\"]\napprovals.preapproved = [[\"touch\"", world.project().display());
        assert!(kept.starts_with(MINE) && kept.contains(&table), "{tier}: {kept}");

        fs::remove_file(&made).unwrap();
        let model = model_of([touch(), done()]);
        let mut served = Served::greeted(&world);
        let session = served.converse(&world.project(), &model.base_url(), "ask");
        served.call("sendUserMessage", json!({"conversation_id": session, "text": "go"}));
        let answered = served.until("event/approvalAnswered").to_string();
        assert!(answered.contains("configuration"), "{tier}: {answered}");
        served.until("event/turnFinished");
        assert!(made.exists(), "{tier}");
        served.end();

        let other = world.root().join("other");
        fs::create_dir(&other).unwrap();
        let model = model_of([touch(), done()]);
        let mut served = Served::greeted(&world);
        let session = served.converse(&other, &model.base_url(), "ask");
        served.call("sendUserMessage", json!({"conversation_id": session, "text": "go"}));
        let asked = served.asked("execCommandApproval");
        served.line(
            &json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"decision": "denied"}}).to_string(),
        );
        served.until("event/turnFinished");
        assert!(!other.join("made").exists(), "{tier}");
        served.end();
    }
}

#[test]
fn settings_with_a_fault_stay_as_they_are_and_the_command_runs_once() {
    let world = World::new(User::Myself).in_tier(tier::all()[0]);
    world.configure(MINE);
    let config = world.own().join("config/config.toml");
    let model = model_of([touch(), done()]);
    let mut served = Served::greeted(&world);
    let session = served.converse(&world.project(), &model.base_url(), "ask");
    // The settings file changes after the session has read it.
    let changed = format!("{MINE}nonsense\n");
    world.configure(&changed);
    served.call("sendUserMessage", json!({"conversation_id": session, "text": "go"}));
    always(&mut served);
    let told = served.until("event/notice").to_string();
    assert!(told.contains("the approval is valid for this session only: cannot add to the table"), "{told}");
    served.until("event/turnFinished");
    assert!(world.project().join("made").exists());
    assert_eq!(fs::read_to_string(&config).unwrap(), changed);
    served.end();
}
