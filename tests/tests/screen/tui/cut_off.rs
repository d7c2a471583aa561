//! Tests a kill while a planner's executor runs at the same time as the first agent.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::replies::calls;

use super::*;

const PLAN: &str = "# Two words\n\n## Steps\n\n### 1. Write two\n\nAcceptance:\n- `grep -q two a.txt`\n\n### 2. Write three\n";

fn step(number: u32, command: &str, ends: bool) -> String {
    let status = |status: &str| ("update_step", json!({"step": number, "status": status}));
    let command = ("shell_exec", json!({ "command": command }));
    let begins = [status("in_progress"), command];
    calls(&begins.into_iter().chain(ends.then(|| status("completed"))).collect::<Vec<_>>())
}

fn model_flags(server: &ReplayServer) -> [String; 4] {
    ["--base-url".to_owned(), server.base_url(), "--model".to_owned(), "scripted".to_owned()]
}

#[test]
fn an_executor_beside_the_first_agent_that_was_killed_is_told_of_and_its_plan_goes_on_at_its_step() {
    let world = world();
    world.file("a.txt", "one\n");
    world.commit();
    let server = model_of([
        calls(&[("write_plan", json!({ "markdown": PLAN }))]),
        step(1, "echo two >> a.txt", true),
        step(2, "touch began; sleep 600", false),
    ]);
    let mut ui = Ui::start(&world.ui(&server, &[]), (120, 40));
    ui.until_shown("/ commands");
    ui.types(":plan write two words\r");
    ui.until_shown("Execute this plan?");
    ui.press_until_so("y", "the approval", |screen| !screen.contains("Execute this plan?"));
    wait_until("the second step has begun", || world.project().join("began").exists());
    kill(Pid::from_raw(i32::try_from(ui.pid()).unwrap()), Signal::SIGKILL).unwrap();
    // The killed UI could not restore the modes of its terminal.
    drop(ui);
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
    // The session goes on, and says how the plan does.
    let server = model_of([done()]);
    let run = |arguments: &[&str], server: &ReplayServer| {
        let mut command = world.bailiwick(arguments);
        command.args(model_flags(server)).arg("-C").arg(world.project());
        Finished::of(command.env("ANTHROPIC_API_KEY", "no-key-is-needed"))
    };
    run(&["exec", "--mode", "auto", "-c", "go on"], &server).expect(0);
    let log = world.log();
    let notices = log.iter().filter(|event| event["type"] == "notice" && event["data"]["code"] == "resumed");
    let notices: Vec<_> = notices.map(|event| event["data"]["message"].as_str().unwrap()).collect();
    let told = notices.iter().find(|message| message.contains("was cut off")).unwrap();
    let told_step =
        "while it executed the plan \"Two words\", at step 2 of 2 (Write three); `bailiwick plan execute ";
    assert!(told.starts_with("agent 1.1.1 ") && told.contains(told_step), "{told}");
    let ended = log.iter().filter(|event| event["type"] == "sub_agent_result").map(|event| &event["data"]);
    let ended: Vec<(&Value, &Value)> = ended.map(|data| (&data["agent"], &data["status"])).collect();
    let interrupted = json!("interrupted");
    assert_eq!(ended, [(&json!("1.1.1"), &interrupted), (&json!("1.1"), &interrupted)]);
    // The notice is not repeated, because the plan's end was logged.
    run(&["exec", "--mode", "auto", "-c", "go on"], &model_of([done()])).expect(0);
    let again = world.log().iter().filter(|event| event["data"]["message"] == **told).count();
    assert_eq!(again, 1);
    let name = told.split("plan execute ").nth(1).unwrap().split('`').next().unwrap();
    let server = model_of([step(2, "echo three >> a.txt", true), done()]);
    let executed = run(&["plan", "execute", name], &server).expect(0);
    assert!(executed.stderr.contains("1 completed: Write two (finished before)"), "{}", executed.stderr);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
}
