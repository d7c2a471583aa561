//! Tests the editing of a message in an editor, and the history of messages across sessions.

use std::fs;
use std::os::unix::fs::MetadataExt;

use tests::Finished;
use tests::replies::{done, model_of, says, shell};
use tests::ui::Ui;
use tests::{marked, wait_until};

use super::{SIZE, sent, world};

#[test]
fn ctrl_g_hands_the_terminal_to_the_editor_and_takes_its_text() {
    let (world, server) = (world(), model_of([done()]));
    let mut command = world.ui(&server, &[]);
    command.env_remove("VISUAL").env("EDITOR", "sed -i s/wrong/right/");
    let mut ui = Ui::start(&command, SIZE);
    ui.until_shown("INSERT");
    ui.types("the wrong word");
    ui.until_shown("the wrong word");
    // In a burst of keys it would be a part of a paste.
    std::thread::sleep(std::time::Duration::from_millis(300));
    ui.types("\x07");
    ui.until_shown("the right word");
    ui.types("\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("the right word"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn the_history_goes_on_in_the_next_session() {
    let (world, server) = (world(), model_of([done(), done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("look at the parser\r");
    ui.until_shown("Done.");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    let file = world.own().join("state/history.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("\x12parser");
    ui.until_shown("▸ look at the parser");
    ui.types("\r");
    ui.until_shown("› look at the parser");
    ui.types("\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 1).contains("look at the parser"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_file_is_named_by_a_few_letters_and_no_ignored_one_is_offered() {
    let (world, server) = (world(), model_of([done()]));
    fs::create_dir_all(world.project().join("src/parts")).unwrap();
    fs::write(world.project().join("src/parts/engine.rs"), "").unwrap();
    fs::write(world.project().join("engine.log"), "").unwrap();
    fs::write(world.project().join(".gitignore"), "*.log\n").unwrap();
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("read @engi");
    ui.until_shown("▸ src/parts/engine.rs");
    assert!(!ui.screen().contains("engine.log"), "{}", ui.screen());
    ui.types("\t");
    ui.until_shown("› read @src/parts/engine.rs");
    ui.types("now\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("read @src/parts/engine.rs now"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_command_of_ones_own_may_write_in_the_project_and_the_model_reads_it_with_the_next_message() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("!echo made > made.txt; echo twice$((1+1)); touch ~/outside\r");
    ui.until_shown("twice2");
    ui.until_shown("done · ");
    assert_eq!(world.read("made.txt"), "made\n");
    assert!(!world.home().join("outside").exists());
    assert!(server.requests().is_empty(), "no model was asked");
    ui.types("what did it say?\r");
    ui.until_shown("Done.");
    let sent = sent(&server, 0);
    assert!(sent.contains("!echo made") && sent.contains("> twice2"), "{sent}");
    ui.types("!sleep 100\r");
    ui.until_shown("working");
    ui.types("\x1b");
    ui.until_shown("interrupted by the user");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    let log = world.log();
    let of_user = log.iter().filter(|event| event["data"]["by"] == "own_command").count();
    assert_eq!(of_user, 2, "{log:?}");
}

#[test]
fn an_answer_is_copied_to_the_terminal_and_to_a_file() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("go\r");
    ui.until_shown("Done.");
    ui.types(":copy\r");
    ui.until_shown("sent to the terminal's clipboard");
    let file = world.own().join("state/copied.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "Done.");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert!(String::from_utf8_lossy(&ui.bytes()).contains("\x1b]52;c;RG9uZS4=\x1b\\"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_cleared_conversation_is_sent_no_more() {
    let (world, server) = (world(), model_of([done(), done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("the word is plum\r");
    ui.until_shown("Done.");
    ui.types(":clear\r");
    ui.until_shown("an empty conversation begins");
    ui.types("which word?\r");
    ui.until("a second answer", |screen| screen.matches("Done.").count() == 2);
    assert!(!sent(&server, 1).contains("plum") && sent(&server, 1).contains("which word?"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn the_log_is_read_in_the_session_itself() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("go\r");
    ui.until_shown("Done.");
    ui.types(":log\r");
    ui.until_shown("turn_finished");
    ui.types("/user_message\r");
    ui.until_shown("▸");
    ui.types("\r");
    ui.until_shown("\"text\": \"go\"");
    ui.types("qq");
    ui.until_shown("INSERT");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn the_wheel_scrolls_where_the_settings_leave_it_to_us() {
    for has_wheel in [true, false] {
        let lines: Vec<_> = (1..=90).map(|line| format!("line {line}.")).collect();
        let (world, server) = (world(), model_of([says(&lines.join("\n\n"), "end_turn")]));
        if !has_wheel {
            world.configure("mouse = \"off\"\n");
        }
        let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
        ui.until_shown("net off");
        ui.types("go\r");
        ui.until_shown("line 90.");
        ui.types(&"\x1b[<64;10;10M".repeat(12));
        if has_wheel {
            ui.until("an earlier line", |screen| !screen.contains("line 90."));
            ui.types(&"\x1b[<65;10;10M".repeat(30));
        }
        ui.until_shown("line 90.");
        ui.types(":q\r");
        let left = ui.end();
        assert_eq!((left.code, &left.modes[..]), (0, &[][..]));
        assert_eq!(left.bytes.windows(8).any(|bytes| bytes == b"\x1b[?1000h"), has_wheel);
    }
}

#[test]
fn plain_keys_never_leave_the_prompt() {
    let (world, server) = (world(), model_of([done()]));
    world.configure("key_modes = \"plain\"\n");
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("\x1b");
    ui.until_shown("Esc: nothing to stop");
    ui.types("jig\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("jig"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn the_branch_stands_in_the_status_line_and_follows_commands() {
    let (world, server) = (world(), model_of([shell("git switch -q -c by/agent"), done()]));
    world.file("a", "");
    world.commit();
    let mut git = world.command("git");
    assert_eq!(Finished::of(git.current_dir(world.project()).args(["branch", "-m", "first"])).code, 0);
    let mut ui = Ui::start(&world.ui(&server, &["--mode", "auto"]), (150, 30));
    ui.until_shown(" · first");
    ui.types("switch\r");
    ui.until_shown("Done.");
    ui.until_shown(" · by/agent");
    ui.types("!git switch -q -c by/person\r");
    ui.until_shown(" · by/person");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn access_that_was_allowed_is_taken_back_and_the_kernel_knows_it() {
    let world = world();
    let beside = world.root().join("beside");
    fs::create_dir(&beside).unwrap();
    let touch = |name: &str| shell(&format!("touch {}/{name} && echo written", beside.display()));
    let server = model_of([touch("one"), done(), touch("two"), done()]);
    let mut ui = Ui::start(&world.ui(&server, &["--mode", "auto"]), (200, 40));
    ui.until_shown("net off");
    let path = beside.display().to_string();
    ui.types(&format!(":allow write {path}\r"));
    ui.until_shown(&format!("access: writes in the project, {path}"));
    ui.types("one\r");
    ui.until_shown("Done.");
    ui.types(":allow\r");
    ui.until_shown(&format!(":disallow write {path}"));
    ui.types(&format!(":disallow write {path}\r"));
    ui.until_shown("access: writes in the project ·");
    ui.types("two\r");
    ui.until("a second answer", |screen| screen.matches("Done.").count() == 2);
    assert!(beside.join("one").exists() && !beside.join("two").exists());
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn another_session_is_gone_on_with_from_within_one() {
    let world = world();
    let first = model_of([says("The first answer.", "end_turn")]);
    let mut ui = Ui::start(&world.ui(&first, &[]), SIZE);
    ui.types("one\r");
    ui.until_shown("The first answer.");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    let logs = fs::read_dir(world.own().join("state/sessions")).unwrap();
    let name = logs.map(|log| log.unwrap().path()).next().unwrap();
    let name = name.file_stem().unwrap().to_str().unwrap().to_owned();
    let second = model_of([says("The second answer.", "end_turn"), done()]);
    let mut ui = Ui::start(&world.ui(&second, &[]), SIZE);
    ui.types("two\r");
    ui.until_shown("The second answer.");
    ui.types(":resume nosuch\r");
    ui.until_shown("no session \"nosuch\"");
    ui.types(&format!(":resume {name}\r"));
    ui.until("the first session", |screen| {
        screen.contains("The first answer.")
            && screen.contains("net off")
            && !screen.contains("The second answer.")
    });
    ui.types("three\r");
    ui.until_shown("Done.");
    let body = sent(&second, 1);
    assert!(body.contains("The first answer.") && !body.contains("The second answer."), "{body}");
    // Without a name a person chooses.
    ui.types(":resume\r");
    ui.until_shown("continue a session");
    ui.types("\x1b");
    let left = ui.end();
    assert_eq!((left.code, &left.modes[..]), (0, &[][..]), "{}", left.screen);
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn the_session_that_is_left_with_nothing_said_is_not_offered() {
    let world = world();
    let model = model_of([says("The first answer.", "end_turn")]);
    let mut ui = Ui::start(&world.ui(&model, &[]), SIZE);
    ui.until_shown("/ commands");
    ui.types(":resume\r");
    ui.until_shown("there is no other session");
    ui.types("one\r");
    ui.until_shown("The first answer.");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    let mut ui = Ui::start(&world.ui(&model, &[]), SIZE);
    ui.until_shown("/ commands");
    ui.types(":resume\r");
    ui.until_shown("continue a session");
    ui.until("the other one alone", |screen| screen.contains("one") && !screen.contains("no messages"));
    ui.types("\r");
    // The list has the first words of the answer too.
    ui.until("the session alone", |screen| {
        screen.contains("The first answer.") && !screen.contains("continue a session")
    });
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}
