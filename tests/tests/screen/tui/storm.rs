//! Tests that the screen is right after many changes of the size, and after scrolling over text of unusual widths.

use std::time::Duration;

use tests::random::Random;

use super::*;

/// Time without a change after which a screen counts as complete.
const STILL: Duration = Duration::from_millis(150);

/// Ctrl+L: draws the whole screen again.
pub(super) const REDRAW: &str = "\x0c";

/// Returns the screen as soon as nothing more is written, without blanks at the ends of rows.
fn at_rest(ui: &Ui) -> String {
    let mut before = ui.bytes().len();
    loop {
        thread::sleep(STILL);
        let now = ui.bytes().len();
        if now == before {
            let rows = ui.screen();
            return rows.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        }
        before = now;
    }
}

/// Returns the keys for a page up or down, or some turns of the mouse wheel.
pub(super) fn scroll(random: &mut Random) -> String {
    let [up, down] = ["\x1b[<64;9;9M", "\x1b[<65;9;9M"];
    match random.below(5) {
        0 => "\x1b[5~".to_owned(),
        1 => "\x1b[6~".to_owned(),
        2 => down.to_owned(),
        _ => up.repeat(1 + usize::try_from(random.below(3)).unwrap()),
    }
}

/// Character that is typed and then deleted. When it is on the screen, the UI has processed all earlier keys.
pub(super) const MARK: &str = "¤";
pub(super) const TAKE_BACK: &str = "\x7f";

/// Checks that the screen is the same after it was drawn again.
fn compared(ui: &mut Ui, when: &str) {
    ui.types(MARK);
    ui.until_shown(MARK);
    ui.types(TAKE_BACK);
    ui.until("the mark is gone", |screen| !screen.contains(MARK));
    let stands = at_rest(ui);
    let written = ui.bytes().len();
    ui.types(REDRAW);
    wait_until("the screen is drawn again", || ui.bytes().len() > written);
    assert_eq!(stands, at_rest(ui), "{when}");
}

/// Returns a reply with all kinds of text whose width terminals disagree about.
pub(super) fn odd_text() -> String {
    let rows = [
        "👨\u{200d}👩\u{200d}👧\u{200d}👦 a family and ⚠\u{fe0f} a sign",
        "plain text of a row that is rather long, and ends somewhere to the right",
        "漢字 and かな, 한글 between words",
        "🇩🇪🇫🇷🇯🇵 flags, 1\u{fe0f}\u{20e3} a keycap, 👍🏽 a thumb",
        "e\u{301}e\u{301}e\u{301} and नि and ก็ and ക്ഷ marks, ᄀ\u{1161}\u{11a8} of jamo, لا and ﷽",
        "- a list\n- with 👩🏽\u{200d}💻 in it\n- and `code`",
        "| a | 漢 |\n| --- | --- |\n| ⚠\u{fe0f} | x |",
        "```rust\nlet x = \"👩\u{200d}🚀\"; // 漢字\n```",
    ];
    (0..6).flat_map(|_| rows).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn fifty_sizes_end_in_the_frame_of_a_fresh_drawing() {
    let (world, server) = (world(), model_of([says(&odd_text(), "end_turn")]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("go\r");
    ui.until_shown("100 in");
    let mut random = Random::new(7);
    for _ in 0..50 {
        let [columns, rows] = [240, 70].map(|most| u16::try_from(1 + random.below(most)).unwrap());
        ui.resize((columns, rows));
        thread::sleep(Duration::from_millis(random.below(12)));
    }
    ui.resize(SIZE);
    ui.until_shown("net off");
    compared(&mut ui, "after the storm");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn no_scroll_leaves_anything_behind() {
    let (world, server) = (world(), model_of([says(&odd_text(), "end_turn")]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("go\r");
    ui.until_shown("100 in");
    let mut random = Random::new(11);
    for step in 0..16 {
        let keys = scroll(&mut random);
        ui.types(&keys);
        compared(&mut ui, &format!("step {step}, {keys:?}"));
    }
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

/// States of the UI: a name, the keys that lead to it, and a text on the screen.
const STATES: [(&str, &[&str], &str); 5] = [
    ("a card", &["go\r"], "allows    write"),
    ("the list of commands", &["/"], "show all commands and keys"),
    ("help", &[":help\r"], "show all commands and keys"),
    ("the log", &[":log\r"], "session_started"),
    ("a written line", &["half a mess"], "half a mess"),
];

#[test]
fn in_every_state_the_shell_takes_the_terminal_and_gives_it_back() {
    let card = tests::replies::calls(&[("write_file", serde_json::json!({"path": "a", "content": "b"}))]);
    for (state, keys, shows) in STATES {
        let (world, server) = (world(), model_of([card.clone(), done()]));
        let mut ui = day::in_a_shell(&world, &world.ui(&server, &[]), SIZE);
        ui.until_shown("net off");
        for keys in keys {
            ui.types(keys);
        }
        ui.until_shown(shows);
        let is_the_shells =
            |screen: &str| screen.contains("Stopped") && screen.trim_end().ends_with("ready>");
        ui.types("\x1a");
        ui.until(state, is_the_shells);
        assert!(TAKEN.iter().all(|mode| *mode == "bracketed paste" || !ui.modes().contains(mode)), "{state}");
        ui.types("fg\r");
        ui.until_shown(shows);
        assert!(TAKEN.iter().all(|mode| ui.modes().contains(mode)), "{state}");
        let named = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "bailiwick\n")
        };
        let supervisor = marked(world.mark().as_bytes()).into_iter().find(named).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(supervisor.cast_signed()), Signal::SIGTERM)
            .unwrap();
        ui.until("the end", |screen| screen.contains("Ended · ") && screen.trim_end().ends_with("ready>"));
        ui.types("exit\r");
        ui.end();
        wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
    }
}

#[test]
fn every_end_in_every_state_gives_the_terminal_back() {
    let card = || tests::replies::calls(&[("write_file", serde_json::json!({"path": "a", "content": "b"}))]);
    for (state, keys, shows) in STATES {
        for signal in [Signal::SIGTERM, Signal::SIGHUP] {
            let (world, server) = (world(), model_of([card(), done()]));
            let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
            ui.until_shown("net off");
            for keys in keys {
                ui.types(keys);
            }
            ui.until_shown(shows);
            assert!(TAKEN.iter().all(|mode| ui.modes().contains(mode)), "{state}");
            ui.signal(signal);
            let left = ui.end();
            assert_eq!(left.modes, Vec::<&str>::new(), "{state} {signal}");
            assert!(!left.screen.contains(shows), "{state} {signal}: {}", left.screen);
            wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
        }
    }
}
