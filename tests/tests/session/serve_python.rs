//! Tests whole tasks with a simple front end in Python, `python/front_end.py`. It knows only the protocol.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use model::replay::ReplayServer;
use serde_json::json;
use tests::replies::{calls, done, model_of, shell};
use tests::world::{KEY, tool_results};
use tests::{Finished, Programs, User, World};

/// Runs a scenario as each user, and checks its result by `check`.
fn play(scenario: &str, replies: &[String], check: impl Fn(&World, &ReplayServer)) {
    for user in User::all() {
        let world = World::new(user);
        let model = model_of(replies.iter().cloned());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/front_end.py");
        // Read by the test, since another user may not be able to read the sources.
        let source = std::fs::read_to_string(script).unwrap();
        let mut python = world.command("python3");
        python.args(["-c", &source, scenario]).arg(Programs::get().path("bailiwick")).arg(world.project());
        let run = Finished::of(python.arg(model.base_url()).env("ANTHROPIC_API_KEY", KEY));
        assert_eq!(run.code, 0, "{user:?}: {}", run.stderr);
        check(&world, &model);
    }
}

fn write_call(command: &str) -> String {
    calls(&[("shell_exec", json!({"command": command, "access": "write"}))])
}

#[test]
fn the_network_is_turned_on_in_mid_turn() {
    play("set_net", &[shell("sleep 600"), done()], |_, _| {});
}

#[test]
fn what_is_approved_happens_and_nothing_else() {
    let file = calls(&[("write_file", json!({"path": "new.txt", "content": "new\n"}))]);
    play("approve", &[file, write_call("echo more >> new.txt"), done()], |world, _| {
        assert_eq!(std::fs::read_dir(world.project()).unwrap().count(), 1);
    });
}

#[test]
fn a_denial_reaches_the_model_with_the_users_word() {
    play("deny", &[write_call("touch made"), done()], |_, model| {
        let results = tool_results(model, 1);
        assert!(results[0]["content"].to_string().contains("use the other file"), "{results:?}");
    });
}

#[test]
fn a_prefix_of_the_session_asks_once() {
    let commands = ["touch one", "touch two", "touch three", "touch four; rm one"];
    let replies: Vec<_> = commands.iter().map(|command| write_call(command)).chain([done()]).collect();
    play("session_grant", &replies, |_, _| {});
}

#[test]
fn an_approval_that_nobody_answers_in_time_is_denied() {
    play("time_out", &[write_call("touch made"), done()], |_, model| {
        assert!(tool_results(model, 1)[0].to_string().contains("not approved"));
    });
}

#[test]
fn what_is_no_answer_is_denied() {
    let replies: Vec<_> = std::iter::repeat_n(write_call("touch made"), 5).chain([done()]).collect();
    play("undecodable", &replies, |_, _| {});
}

#[test]
fn a_front_end_that_goes_in_mid_approval_has_denied() {
    play("disconnect", &[write_call("touch made"), done()], |_, model| {
        assert_eq!(model.requests().len(), 1, "no model is asked for nobody");
    });
    play("killed", &[write_call("touch made"), done()], |_, _| {});
}

#[test]
fn an_abort_ends_the_turn_and_not_the_conversation() {
    play("abort", &[write_call("touch made"), done()], |_, _| {});
}

/// Runs the client of the documentation, exactly as printed there.
#[test]
fn the_documented_client_carries_a_task_out() {
    let world = World::new(User::Myself);
    let model = model_of([write_call("echo made > new.txt"), done()]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/client.py");
    let answers = world.root().join("answers");
    std::fs::write(&answers, "y\n").unwrap();
    let mut python = world.command("python3");
    python.arg(source).arg(world.project()).arg("make it").arg(format!("base_url={}", model.base_url()));
    python.env("ANTHROPIC_API_KEY", KEY).env("BAILIWICK", Programs::get().path("bailiwick"));
    let run = Finished::from(python.stdin(std::fs::File::open(answers).unwrap()).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("Done."), "{}", run.stdout);
    assert!(
        run.stderr.contains("execCommandApproval") && run.stderr.contains("done after 2 steps"),
        "{}",
        run.stderr
    );
    assert_eq!(world.read("new.txt"), "made\n");
}
