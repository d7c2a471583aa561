//! Tests the terminal UI on a real terminal: its output, messages, and the terminal's state afterwards.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

mod clipboard;
mod cut_off;
mod day;
mod fingers;
mod full_disk;
mod ghosts;
mod pictures;
mod plain;
mod plans;
mod slow_line;
mod storm;
mod taken_back;
mod terminal;
mod typing;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use model::replay::{ReplayServer, Reply};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::Signal;
use tests::replies::{done, model_of, says, serve, shell};
use tests::ui::{Left, TAKEN, Ui};
use tests::{Finished, User, World, marked, wait_until};

const SIZE: (u16, u16) = (80, 24);

fn world() -> World {
    World::new(User::Myself)
}

fn sent(server: &ReplayServer, request: usize) -> String {
    String::from_utf8(server.requests()[request].body.to_vec()).unwrap()
}

/// Checks the summary of an ended session. If the session has messages, the summary must name the command that
/// continues it.
fn is_summed_up(left: &Left, has_messages: bool) {
    let said = String::from_utf8_lossy(&left.bytes).into_owned();
    assert!(said.contains("Ended · "), "{said:?}");
    assert_eq!(said.contains("Resume: bailiwick "), has_messages, "{said:?}");
}

#[test]
fn it_is_refused_in_words_where_there_is_no_terminal_for_it() {
    let (world, server) = (world(), model_of([]));
    let done = Finished::of(&mut world.ui(&server, &[]));
    assert_eq!(done.code, 2);
    assert!(done.stdout.is_empty() && done.stderr.contains("needs a terminal"), "{}", done.stderr);
    assert!(done.stderr.contains("bailiwick exec"), "{}", done.stderr);
    let refused = |change: &dyn Fn(&mut Command), words: &str| {
        let mut command = world.ui(&server, &[]);
        change(&mut command);
        let left = Ui::start(&command, SIZE).end();
        assert!(left.code == 2 && left.screen.contains(words), "{left:?}");
        assert!(!left.bytes.contains(&0x1b), "{left:?}");
    };
    refused(
        &|command| {
            command.env("TERM", "dumb");
        },
        "TERM=dumb",
    );
    refused(
        &|command| {
            command.env_remove("TERM");
        },
        "TERM is not set",
    );
    refused(
        &|command| {
            command.env("BAILIWICK_LOG", "debug");
        },
        "BAILIWICK_LOG_FILE",
    );
    refused(
        &|command| {
            command.arg("--write").arg("/nonexistent/x");
        },
        "/nonexistent/x",
    );
    refused(
        &|command| {
            command.env_remove("ANTHROPIC_API_KEY");
        },
        "ANTHROPIC_API_KEY",
    );
    refused(
        &|command| {
            command.arg("exce");
        },
        "no command \"exce\"",
    );
}

#[test]
fn the_first_frame_says_what_is_allowed_and_which_keys_count() {
    let (world, server) = (world(), model_of([]));
    let ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("net off");
    let screen = ui.screen();
    assert!(screen.contains("ask") && screen.contains("INSERT") && screen.contains("/ commands"), "{screen}");
    let access = "Reads this project, asks before each change. No network. Secrets hidden.";
    assert!(screen.contains(access) && screen.contains(" · read-only"), "{screen}");
    assert_eq!(ui.modes(), TAKEN);
    assert!(ui.is_raw());
    ui.signal(Signal::SIGTERM);
    assert_eq!(ui.end().code, 143);
}

#[test]
fn a_message_is_answered_and_the_turn_summed_up() {
    let (world, server) = (world(), model_of([says("Here is what I found.", "end_turn"), done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("what is here?\r");
    ui.until_shown("Here is what I found.");
    ui.until_shown("100 in");
    assert!(sent(&server, 0).contains("what is here?"));
    ui.types("and\x1b\rthen?\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 1).contains(r"and\nthen?"));
    ui.types(":q\r");
    let left = ui.end();
    assert_eq!((left.code, &left.modes[..]), (0, &[][..]));
    is_summed_up(&left, true);
}

#[test]
fn the_last_answer_stays_on_the_terminal_when_the_ui_ends() {
    let hostile = "The answer is 42.\u{1b}]0;title\u{7}\u{1b}[2J";
    let (world, server) = (world(), model_of([says("Let me see.", "end_turn"), says(hostile, "end_turn")]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    for (said, answer) in [("look", "Let me see."), ("and now?", "The answer is 42.")] {
        ui.types(&format!("{said}\r"));
        ui.until_shown(answer);
    }
    ui.types(":q\r");
    let left = ui.end();
    let shown = "The answer is 42.\\u{1b}]0;title\\u{7}\\u{1b}[2J";
    assert!(left.screen.contains(shown), "{}", left.screen);
    assert!(!left.screen.contains("Let me see."), "{}", left.screen);
}

#[test]
fn a_task_on_the_command_line_is_the_first_message() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &["look around"]), SIZE);
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("look around"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn what_was_typed_ahead_is_delivered() {
    let (world, server) = (world(), model_of([done()]));
    // Until a program sets another mode, the terminal turns Enter into a line feed.
    let mut ui = Ui::start_with_keys(&world.ui(&server, &[]), SIZE, "typed ahead\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("typed ahead"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_paste_is_not_sent_by_its_line_ends() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("net off");
    let long = "0123456789abcdef".repeat(1 << 16);
    ui.types(&format!("\x1b[200~first\rsecond {long} last\r\n\x1b[201~"));
    ui.until_shown("last");
    assert!(server.requests().is_empty());
    ui.types("\r");
    ui.until_shown("Done.");
    let body = sent(&server, 0);
    assert!(body.contains(r"first\nsecond ") && body.contains(&long));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn an_interrupt_from_outside_is_one_of_the_turn() {
    let (world, server) = (world(), model_of([shell("echo started; exec sleep 1000"), done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("work\r");
    ui.until_shown("started");
    ui.signal(Signal::SIGINT);
    ui.until_shown("interrupted");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn leaving_in_the_middle_of_a_command_leaves_no_process() {
    let script = "echo started; (setsid sleep 1000 &) ; exec sleep 1000";
    let (world, server) = (world(), model_of([shell(script), done()]));
    let mut ui = Ui::start(&world.ui(&server, &["--mode", "auto"]), SIZE);
    ui.types("work\r");
    ui.until_shown("started");
    ui.types(":q\r");
    let left = ui.end();
    assert_eq!((left.code, &left.modes[..]), (0, &[][..]));
    // A sandbox-exec that waits for an order ends when its supervisor has.
    wait_until("no process of the session is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn the_network_goes_on_and_off() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &["--mode", "auto"]), SIZE);
    ui.until_shown("net off");
    ui.types(":net on\r");
    ui.until_shown("net on ");
    ui.types(":net off\r");
    ui.until_shown("net off ");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    let log = world.log();
    let changes: Vec<_> = log.iter().filter(|event| event["type"] == "rights_changed").collect();
    assert_eq!(changes.len(), 2, "{log:?}");
}

#[test]
fn the_network_leads_to_the_host_where_the_start_allowed_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let greeter =
        thread::spawn(move || listener.accept().unwrap().0.write_all(b"the host answers\n").unwrap());
    let connect = shell(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3"));
    let (world, server) = (world(), model_of([connect, done()]));
    let mut ui = Ui::start(&world.ui(&server, &["--mode", "auto", "--reach", "host"]), SIZE);
    ui.until_shown("net off");
    ui.types(":net on\r");
    ui.until_shown("network on +host");
    ui.types("greet the host\r");
    ui.until_shown("the host answers");
    ui.until_shown("Done.");
    greeter.join().unwrap();
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn commands_with_a_slash_never_reach_the_model() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), (100, 24));
    ui.until_shown("net off");
    ui.types("/fly\r");
    ui.until_shown("no command /fly (see :help)");
    ui.types("!\r");
    ui.until_shown("!COMMAND runs a command of your own");
    ui.types("?");
    ui.until_shown("twice: end the session");
    ui.types("\r");
    ui.until_shown("set network access, +HOST adds a host");
    assert_eq!(server.requests().len(), 0);
    ui.types("/etc/hosts is a message\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("/etc/hosts is a message"));
    ui.types("/q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_provider_that_cannot_be_reached_ends_the_turn_and_not_the_session() {
    let server = serve([Reply::error(401, "authentication_error", "bad key"), Reply::sse(done())]);
    let world = world();
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("go\r");
    ui.until_shown("bad key");
    ui.types("again\r");
    ui.until_shown("Done.");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_reply_without_a_byte_is_tried_again_under_the_eyes_of_the_user() {
    let empty = Reply::sse("").header("content-length", "0");
    let server = serve([empty, Reply::sse(done())]);
    let world = world();
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("go\r");
    ui.until_shown("Done.");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn an_error_and_a_denial_are_told_once() {
    let (world, model) = (world(), model_of([shell("touch /etc/probe-of-ours"), done()]));
    let mut ui = Ui::start(&world.ui(&model, &[]), (120, 40));
    ui.types("go\r");
    ui.until_shown("Blocked by");
    ui.press_until_so("n", "the card is gone", |screen| !screen.contains("Blocked by"));
    ui.until_shown("Done.");
    // The text for the model about the access is not shown to the person as well.
    assert!(sent(&model, 1).contains("Your rights:"));
    let screen = ui.screen();
    assert!(
        screen.matches("/etc/probe-of-ours").count() == 3 && !screen.contains("Your rights:"),
        "{screen}"
    );
    // Keys that were pressed after the card are in the prompt.
    ui.types("\x15:q\r");
    ui.end();
    let refuses = serve([Reply::error(401, "authentication_error", "invalid x-api-key")]);
    let mut ui = Ui::start(&world.ui(&refuses, &[]), (120, 40));
    ui.types("go\r");
    ui.until_shown("hint: check ANTHROPIC_API_KEY");
    ui.until_shown("ended by the error above");
    assert_eq!(ui.screen().matches("invalid x-api-key").count(), 1, "{}", ui.screen());
    ui.types(":q\r");
    ui.end();
}

#[test]
fn a_stream_that_stands_still_is_interrupted_and_its_words_stay() {
    let server = serve([Reply::sse(says("Half an answer", "end_turn")).cut_after(700).then_silence()]);
    let world = world();
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("go\r");
    wait_until("the request is made", || !server.requests().is_empty());
    ui.until_shown("Half");
    ui.types("\x1b");
    ui.until_shown("interrupted");
    assert!(ui.screen().contains("Half"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_moved_build_directory_and_a_write_refused_to_a_command_that_succeeded_are_shown() {
    let world = world();
    let refused = format!("touch {}/new; true", world.root().display());
    let server = model_of([shell(&refused), done()]);
    let mut command = world.ui(&server, &["--mode", "auto", "begin to work"]);
    let mut ui = Ui::start(command.env("CARGO_TARGET_DIR", "/elsewhere/target"), (130, 50));
    ui.until("both", |screen| {
        screen.contains("CARGO_TARGET_DIR=/elsewhere/target is outside")
            && screen.contains("✗ blocked by the kernel")
    });
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_projects_settings_are_trusted_by_an_answer_to_the_question_alone() {
    let (world, server) = (world(), model_of([]));
    let outside = world.root().join("outside");
    fs::create_dir(&outside).unwrap();
    world.file(".bailiwick.toml", format!("rights.write = [{outside:?}]\n"));
    let command = world.ui(&server, &[]);
    let name = outside.display().to_string();
    let begun = |screen: &str| screen.contains("net off");
    // A key from before the question has no effect. After a `no`, the settings are not trusted, and a message says so.
    let mut ui = Ui::start_with_keys(&command, (200, 24), "y\r");
    ui.until_shown("Trust these settings? [y/N]");
    assert!(ui.screen().contains(&name), "{}", ui.screen());
    ui.types("n\r");
    ui.until("the UI", begun);
    assert!(!ui.screen().contains(&format!("writes in {name}")), "{}", ui.screen());
    ui.until_shown("is not trusted, so these settings");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    // A `yes` is valid for this session and the next one.
    let mut ui = Ui::start(&command, (200, 24));
    ui.until_shown("Trust these settings? [y/N]");
    ui.types("y\r");
    ui.until_shown(&format!("writes in {name}"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    let mut ui = Ui::start(&command, (200, 24));
    ui.until_shown(&format!("writes in {name}"));
    assert!(!String::from_utf8_lossy(&ui.bytes()).contains("Trust these settings?"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}
