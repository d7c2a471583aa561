//! Tests a day's work at one terminal, from the first question to the last key.

use serde_json::{Value, json};
use tests::programs::write_script;
use tests::replies::calls;

use super::*;

const TALL: (u16, u16) = (140, 40);

const PLAN: &str = "# Three\n\n## Steps\n\n### 1. Write three\n\nAcceptance:\n- `grep -q three list.txt`\n";

/// Script of an editor that changes a plan, and appends text to other files.
const EDITOR: &str = "#!/bin/sh\ngrep -q 'Write three' \"$1\" && exec sed -i 's/Write three/Write the three/' \"$1\"\n\
    printf ' and the rest' >> \"$1\"\n";

fn command(text: &str) -> (&'static str, Value) {
    ("shell_exec", json!({ "command": text }))
}

fn editor(world: &World) -> std::path::PathBuf {
    let path = world.own().join("editor");
    write_script(&path, EDITOR);
    path
}

/// Starts the UI from a shell with job control.
pub(super) fn in_a_shell(world: &World, ui: &Command, size: (u16, u16)) -> Ui {
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
    let words = std::iter::once(ui.get_program()).chain(ui.get_args());
    let line = words.map(quoted).collect::<Vec<_>>().join(" ");
    let mut shell = world.command("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "ready> ").env("INPUTRC", "/dev/null");
    for (name, value) in ui.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let mut shell = Ui::start(&shell, size);
    shell.until_shown("ready>");
    shell.types(&format!("{line}\r"));
    shell
}

#[test]
fn a_day_at_one_terminal() {
    let world = world();
    world.file("list.txt", "one\n");
    world.commit();
    let change = json!({"path": "list.txt", "old_string": "one\n", "new_string": "one\ntwo\n"});
    let begins = ("update_step", json!({"step": 1, "status": "in_progress"}));
    let ends = ("update_step", json!({"step": 1, "status": "completed"}));
    let server = model_of([
        calls(&[("edit_file", change)]),
        calls(&[command("echo second > second.txt")]),
        says("The first part is over.", "end_turn"),
        calls(&[("write_plan", json!({ "markdown": PLAN }))]),
        calls(&[begins, command("echo three >> list.txt"), ends]),
        says("The step is done.", "end_turn"),
        says("The plan is done.", "end_turn"),
        calls(&[("spawn_agent", json!({"task": "look at it", "access": "read"}))]),
        calls(&[command("sleep 1000")]),
        says("It is late.", "end_turn"),
    ]);
    let mut command = world.ui(&server, &[]);
    command.env("EDITOR", editor(&world));
    let mut ui = in_a_shell(&world, &command, TALL);
    ui.until_shown("net off");
    // Asked, approved, done.
    ui.types("begin\r");
    ui.until_shown("Edit list.txt?");
    ui.press_until("y", "allowed by you");
    // Denied by the kernel, allowed for one more run.
    ui.until_shown("Blocked by the kernel");
    assert!(!world.project().join("second.txt").exists());
    ui.press_until("o", "The first part is over.");
    assert_eq!((world.read("list.txt"), world.read("second.txt")), ("one\ntwo\n".into(), "second\n".into()));
    // Keys that were pressed before a card counted stand in the prompt.
    ui.types("\x15:net on\r");
    ui.until_shown("net on");
    // A plan, edited, approved, executed.
    ui.types(":plan add three\r");
    ui.until_shown("Execute this plan?");
    ui.press_until("v", "Write the three");
    ui.press_until_so("y", "the approval", |screen| !screen.contains("Execute this plan?"));
    ui.until_shown("plan · ended, 1 of 1 done");
    assert_eq!(world.read("list.txt"), "one\ntwo\nthree\n");
    // A sub-agent in the tree, interrupted with the agent above it.
    ui.types("\x15look\r");
    ui.until_shown("look at it");
    ui.until_shown("run sleep 1000");
    ui.types("\x1b");
    ui.until("the end of the sub-agent", |screen| {
        screen.contains("✗ 1.2 ") && screen.contains("interrupted")
    });
    // The text that the editor returns becomes the message.
    ui.types("half");
    ui.until_shown("half");
    ui.types("\x07");
    ui.until_shown("half and the rest");
    // Suspended, and continued.
    ui.types("\x1a");
    ui.until("the shell", |screen| screen.contains("Stopped") && screen.trim_end().ends_with("ready>"));
    ui.types("fg\r");
    ui.until_shown("half and the rest");
    ui.types("\r");
    ui.until_shown("It is late.");
    assert!(sent(&server, server.requests().len() - 1).contains("half and the rest"));
    ui.types(":q\r");
    ui.until("the shell", |screen| screen.trim_end().ends_with("ready>") && screen.contains("Ended · "));
    ui.types("exit\r");
    assert_eq!(ui.end().code, 0);
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
    let log = world.log();
    let mut kinds = log.iter().map(|event| event["type"].as_str().unwrap());
    for kind in [
        "approval_answered",
        "tool_call_finished",
        "approval_answered",
        "tool_call_finished",
        "rights_changed",
        "plan_created",
        "plan_created",
        "plan_approved",
        "plan_step_status",
        "sub_agent_result",
        "sub_agent_spawned",
        "sub_agent_result",
        "turn_finished",
        "result",
    ] {
        assert!(kinds.any(|found| found == kind), "{kind}");
    }
}
