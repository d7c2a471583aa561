//! Tests `--plain`: it shows a session as lines.

use tests::replies::calls;

use super::*;

fn write(content: &str) -> String {
    calls(&[("write_file", serde_json::json!({"path": "a.txt", "content": content}))])
}

#[test]
fn a_session_in_lines_asks_in_words_and_commands_no_terminal() {
    let (world, server) = (
        world(),
        model_of([
            write("one\u{1b}[2J\n"),
            says("Written.\u{1b}]0;title\u{7}", "end_turn"),
            write("two\n"),
            says("Left alone.", "end_turn"),
        ]),
    );
    let mut command = world.ui(&server, &["--plain"]);
    command.env("TERM", "dumb");
    let mut ui = Ui::start(&command, (100, 60));
    ui.until("the prompt", |screen| screen.trim_end().ends_with('>'));
    ui.types("write it\r");
    ui.until_shown("Approval 1 waits for you.");
    assert!(ui.screen().contains("│ one\\u{1b}[2J"), "{}", ui.screen());
    // Neither an empty line nor a single letter is an answer. Lines from before the question are ignored.
    for (line, refusals) in [("\r", 1), ("y\r", 2)] {
        ui.press_until_so(line, "a refusal", |screen| {
            screen.matches("That is not an answer.").count() >= refusals
        });
    }
    assert!(!world.project().join("a.txt").exists());
    ui.types("yes\r");
    ui.until_shown("Written.");
    ui.until("the prompt", |screen| screen.trim_end().ends_with('>'));
    assert_eq!(world.read("a.txt"), "one\u{1b}[2J\n");
    ui.types("again\r");
    ui.until_shown("Approval 2 waits for you.");
    ui.until("the question", |screen| screen.trim_end().ends_with("\n?"));
    ui.types("no, leave it\r");
    ui.until_shown("Left alone.");
    ui.until("the prompt", |screen| screen.trim_end().ends_with('>'));
    assert!(sent(&server, 3).contains("leave it"));
    assert_eq!(world.read("a.txt"), "one\u{1b}[2J\n");
    ui.types(":net on\r");
    ui.until("the change", |screen| screen.contains("access: ") && screen.contains("network on"));
    ui.types("!echo mine\r");
    ui.until_shown("│ mine");
    ui.types(":nonsense\r");
    ui.until_shown("there is no command :nonsense");
    ui.types("\x04");
    let left = ui.end();
    assert_eq!((left.code, &left.modes[..]), (0, &[][..]));
    let text = String::from_utf8(left.bytes).unwrap();
    let controls: Vec<_> = text.chars().filter(|c| c.is_control() && !"\r\n\t".contains(*c)).collect();
    // What the terminal itself shows of Ctrl+D.
    assert!(controls.iter().all(|c| *c == '\u{8}'), "{controls:?}");
    assert!(text.contains("Resume: bailiwick resume "), "{text}");
}

#[test]
fn a_typed_always_lasts_in_the_project() {
    let touch = || calls(&[("shell_exec", serde_json::json!({"command": "touch made", "access": "write"}))]);
    let replies = [touch(), touch(), says("Made.", "end_turn"), touch(), says("Again.", "end_turn")];
    let (world, server) = (world(), model_of(replies));
    let made = world.project().join("made");
    let mut ui = Ui::start(&world.ui(&server, &["--plain", "go on now"]), (100, 60));
    ui.until("the question", |screen| screen.trim_end().ends_with("\n?"));
    let asked = ui.screen();
    assert!(asked.contains("Or type always to allow commands that begin with touch"), "{asked}");
    assert!(!made.exists());
    ui.types("always\r");
    // The second command of the turn needs no approval.
    ui.until_shown("Made.");
    ui.until("the prompt", |screen| screen.trim_end().ends_with("\n>"));
    assert!(!ui.screen().contains("Approval 2"), "{}", ui.screen());
    ui.types("\x04");
    assert_eq!(ui.end().code, 0);
    let kept = fs::read_to_string(world.own().join("config/config.toml")).unwrap();
    assert!(kept.contains("approvals.preapproved = [[\"touch\""), "{kept}");
    fs::remove_file(&made).unwrap();
    let mut ui = Ui::start(&world.ui(&server, &["--plain", "once more"]), (100, 60));
    ui.until_shown("Again.");
    assert!(made.exists() && !ui.screen().contains("Approval 1"), "{}", ui.screen());
    ui.types("\x04");
    ui.end();
}

const PLAN: &str = "# Words\n\n## Steps\n\n### 1. Write one\n\nAcceptance:\n- `true`\n";

#[test]
fn a_plan_is_asked_about_with_its_commands_and_no_event_stands_behind_a_mark() {
    let completed = serde_json::json!({"step": 1, "status": "completed"});
    let replies = [
        calls(&[("write_plan", serde_json::json!({ "markdown": PLAN }))]),
        calls(&[("update_step", completed)]),
        done(),
        done(),
    ];
    let (world, server) = (world(), model_of(replies));
    let mut ui = Ui::start(&world.ui(&server, &["--plain"]), (60, 120));
    ui.until("the prompt", |screen| screen.trim_end().ends_with('>'));
    assert!(ui.screen().contains("commands,\n    Ctrl+C stops a turn"), "{}", ui.screen());
    ui.types(":plan write one\r");
    ui.until("the question", |screen| screen.trim_end().ends_with("\n?"));
    let screen = ui.screen();
    assert!(screen.contains("access of the execution, as Bailiwick enforces it"), "{screen}");
    assert!(screen.contains("[will run without asking: the command of step 1]\n  │ true"), "{screen}");
    ui.types("yes\r");
    ui.until("the prompt", |screen| {
        screen.contains("sub-agent 1.1: done") && screen.trim_end().ends_with("\n>")
    });
    ui.types(":allow\r");
    ui.until_shown("allowed in this session:\n  no additional access");
    ui.until("the prompt", |screen| screen.trim_end().ends_with("\n>"));
    ui.types("\x04");
    let left = ui.end();
    let text = String::from_utf8(left.bytes).unwrap().replace('\r', "");
    assert_eq!(text.matches("> \n").count(), 1, "the last one, which Ctrl+D answers: {text}");
    assert!(text.contains("sub-agent 1.1.1 (write caches\n"), "{text}");
}

#[test]
fn what_was_typed_before_a_question_answers_nothing_and_ctrl_c_stops_the_turn() {
    let slow = shell("until [ -e go ]; do sleep 0.01; done; echo slept");
    let (world, server) =
        (world(), model_of([slow, write("x\n"), done(), shell("echo started; sleep 1000"), done()]));
    let mut ui = Ui::start(&world.ui(&server, &["--plain", "go on now"]), (100, 60));
    ui.until_shown("→");
    // Without a line end, the kernel keeps the word until the question discards it.
    ui.types("yes");
    world.file("go", "");
    ui.until("the question", |screen| screen.trim_end().ends_with("\n?"));
    ui.types("\r");
    ui.until_shown("That is not an answer.");
    assert!(!world.project().join("a.txt").exists());
    ui.types("stop\r");
    ui.until("the prompt", |screen| screen.trim_end().ends_with('>'));
    assert!(!world.project().join("a.txt").exists());
    ui.types("more\r");
    ui.until_shown("Done.");
    ui.until("the prompt", |screen| screen.trim_end().ends_with('>'));
    ui.types("and more\r");
    ui.until_shown("echo started");
    ui.types("\x03");
    ui.until("the end of the turn", |screen| {
        screen.contains("interrupted") && screen.trim_end().ends_with('>')
    });
    ui.types(":quit\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn signals_end_it_as_they_end_everything() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let (world, server) = (world(), model_of([shell("echo started; sleep 1000"), done()]));
        let ui = Ui::start(&world.ui(&server, &["--plain", "go on now"]), SIZE);
        ui.until_shown("→");
        ui.signal(signal);
        assert_eq!(ui.end().code, code, "{signal}");
        assert_eq!(marked(world.mark().as_bytes()), Vec::<u32>::new());
    }
}

#[test]
fn a_part_of_a_change_is_approved_by_the_numbers_of_its_hunks() {
    let old = "one\n2\n3\n4\n5\n6\n7\n8\nnine\n";
    let (world, server) = (
        world(),
        model_of([write(&old.replace("one", "ONE").replace("nine", "NINE")), says("Written.", "end_turn")]),
    );
    fs::write(world.project().join("a.txt"), old).unwrap();
    let mut command = world.ui(&server, &["--plain"]);
    command.env("TERM", "dumb");
    let mut ui = Ui::start(&command, (100, 60));
    ui.until("the prompt", |screen| screen.trim_end().ends_with('>'));
    ui.types("write it\r");
    ui.until_shown("Approval 1 waits for you.");
    ui.press_until_so("part 3\r", "a refusal", |screen| screen.contains("That is not an answer."));
    let screen = ui.screen().replace('\n', " ");
    assert!(screen.contains("Or type part and numbers of hunks"), "{screen}");
    ui.types("part 2\r");
    ui.until_shown("Written.");
    assert_eq!(world.read("a.txt"), old.replace("nine", "NINE"));
    assert!(sent(&server, 1).contains("The user approved 1 of 2 hunks"));
    ui.types("\x04");
    assert_eq!(ui.end().code, 0);
}
