//! Tests `bailiwick show` with sessions of the real program: complete, incomplete and changed ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::replies::{calls, model_of, says, shell};
use tests::ui::Ui;
use tests::{Finished, User, World};

fn session() -> World {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    let server = model_of([
        shell("cat a.txt; echo $((40 + 2))"),
        calls(&[("spawn_agent", json!({"task": "look around"}))]),
        says("Nothing here.", "end_turn"),
        says("It says \u{1b}[31mone\u{202e}.\n</script><script>alert(1)</script>\n```\n# Done", "end_turn"),
    ]);
    Finished::of(&mut world.exec(&server, &["--mode", "auto"])).expect(0);
    world
}

fn show(world: &World, arguments: &[&str]) -> Finished {
    let mut show = world.bailiwick(["show", "-C"]);
    Finished::of(show.arg(world.project()).args(arguments))
}

fn log_of(world: &World) -> PathBuf {
    fs::read_dir(world.own().join("state/sessions")).unwrap().flatten().next().unwrap().path()
}

#[test]
fn a_session_shows_its_messages_calls_results_and_sub_agents() {
    let world = session();
    let text = show(&world, &[]).expect(0).stdout;
    for part in [
        "❯ ",
        "│ do it",
        "→ ",
        "run cat a.txt; echo",
        "│ one\n│ 42",
        "sub-agent 1.1",
        "  │ Nothing here.",
        "in all: ",
    ] {
        assert!(text.contains(part), "{part:?}\n{text}");
    }
    assert!(text.contains("│ It says \\u{1b}[31mone\\u{202e}."), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    let one = show(&world, &["--agent", "1.1"]).expect(0).stdout;
    assert!(one.contains("│ Nothing here.") && !one.contains("│ do it"), "{one}");
    let none = show(&world, &["--agent", "1.7"]).expect(2);
    assert!(none.stderr.contains("the session's agents are 1, 1.1"), "{}", none.stderr);
}

#[test]
fn a_session_is_found_by_its_name_and_its_log_by_its_path() {
    let world = session();
    let log = log_of(&world);
    let name = log.file_stem().unwrap().to_str().unwrap();
    let whole = show(&world, &[]).expect(0).stdout;
    for named in [name, &name[..20], log.to_str().unwrap()] {
        assert_eq!(show(&world, &[named]).expect(0).stdout, whole, "{named}");
    }
    world.file("empty.jsonl", "");
    let empty = world.project().join("empty.jsonl");
    let shown = show(&world, &[empty.to_str().unwrap()]).expect(1).stdout;
    assert!(shown.contains("no event that can be read"), "{shown}");
    assert!(show(&world, &["x"]).expect(2).stderr.contains("no session \"x\""));
    assert!(show(&world, &["/no/such.jsonl"]).expect(2).stderr.contains("cannot read the session log"));
}

#[test]
fn every_form_keeps_hostile_text_apart() {
    let world = session();
    let page = show(&world, &["--output", "html"]).expect(0).stdout;
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script"), "{page}");
    assert!(page.contains("default-src 'none'"));
    let document = show(&world, &["--output", "markdown"]).expect(0).stdout;
    assert!(document.contains("````text\nIt says"), "{document}");
    let events = show(&world, &["--output", "json"]).expect(0).stdout;
    assert_eq!(events, fs::read_to_string(log_of(&world)).unwrap());
    let of_one = show(&world, &["--output", "json", "--agent", "1.1"]).expect(0).stdout;
    let agents = of_one.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["agent"].clone());
    assert!(agents.collect::<Vec<_>>().iter().all(|agent| agent == "1.1"));
}

#[test]
fn a_torn_log_and_a_changed_one_are_shown_and_say_so() {
    let world = session();
    let log = log_of(&world);
    OpenOptions::new().append(true).open(&log).unwrap().write_all(b"{\"v\":7,\"id\":99").unwrap();
    let torn = show(&world, &[]).expect(0).stdout;
    assert!(torn.contains("is incomplete") && torn.contains("│ do it"), "{torn}");
    let text = fs::read_to_string(&log).unwrap().replacen("do it", "do that", 1);
    fs::write(&log, text).unwrap();
    let changed = show(&world, &[]).expect(1).stdout;
    assert!(
        changed.contains("CHANGED AFTER IT WAS WRITTEN") && changed.contains("does not continue the chain"),
        "{changed}"
    );
    assert!(changed.contains("│ do that"));
    let events = show(&world, &["--output", "json"]).expect(1);
    assert!(events.stderr.contains("does not continue the chain") && events.stdout.contains("do that"));
}

#[test]
fn at_a_terminal_the_text_goes_through_the_pager_that_the_environment_names() {
    let world = session();
    let shown = |pager: &str, columns: u16| {
        let mut show = world.bailiwick(["show", "-C"]);
        show.arg(world.project()).env("TERM", "xterm-256color").env("PAGER", pager);
        let left = Ui::start(&show, (columns, 120)).end();
        assert_eq!(left.code, 0, "{}", left.screen);
        String::from_utf8_lossy(&left.bytes).replace('\r', "")
    };
    let paged = shown("sed s/^/page:/", 100);
    assert!(paged.lines().all(|line| line.starts_with("page:")) && paged.contains("page:│ do it"), "{paged}");
    for pager in ["cat", "no-such-pager 2>/dev/null"] {
        assert!(shown(pager, 100).contains("\n│ do it\n"), "{pager}");
    }
    // A closed output is no error.
    assert_eq!(shown("head -n 1", 100).lines().count(), 1);
    // A terminal would break a long line, and its rest would stand where a title does.
    assert!(shown("cat", 40).lines().all(|line| line.chars().count() <= 40));
}
