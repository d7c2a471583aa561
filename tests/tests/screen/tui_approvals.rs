//! Tests approvals on a real terminal, with valid and invalid answers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

use model::replay::ReplayServer;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::ui::{TAKEN, Ui};
use tests::{User, World, marked, wait_until};

const SIZE: (u16, u16) = (80, 24);
const COMMAND: &str = "Run this command?";

struct Asked {
    world: World,
    server: ReplayServer,
    ui: Ui,
}

fn writes(command: &str) -> String {
    calls(&[("shell_exec", json!({"command": command, "access": "write"}))])
}

impl Asked {
    fn with(replies: impl IntoIterator<Item = String>) -> Self {
        Self::on(SIZE, replies)
    }

    fn on(size: (u16, u16), replies: impl IntoIterator<Item = String>) -> Self {
        let (world, server) = (World::new(User::Myself), model_of(replies));
        let mut ui = Ui::start(&world.ui(&server, &[]), size);
        ui.types("go\r");
        Self { world, server, ui }
    }

    fn exists(&self, name: &str) -> bool {
        self.world.project().join(name).exists()
    }

    /// Presses a key repeatedly until a text is on the screen, because the UI does not accept keys at once.
    fn press_until(&mut self, key: &str, text: &str) {
        self.ui.press_until(key, text);
    }

    /// Returns the body of the last request to the model, which ends with the tool result.
    fn told(&self) -> String {
        String::from_utf8(self.server.requests().last().unwrap().body.to_vec()).unwrap()
    }

    fn decisions(&self) -> Vec<Value> {
        let log = self.world.log();
        log.iter()
            .filter(|event| event["type"] == "approval_answered")
            .map(|event| event["data"].clone())
            .collect()
    }

    /// Ends the UI, and checks that no process is left.
    fn leave(mut self) {
        // Keys for a card that has already closed are in the prompt.
        self.ui.types("\x15:q\r");
        let left = self.ui.end();
        assert_eq!((left.code, &left.modes[..]), (0, &[][..]), "{}", left.screen);
        assert_eq!(marked(self.world.mark().as_bytes()), Vec::<u32>::new());
    }
}

/// Returns a command of three kilobytes. Its end is not on the screen.
fn long_command() -> String {
    let harmless = "echo this is a line of a harmless command; ".repeat(70);
    format!("{harmless}\ntouch ran # THE-TAIL")
}

#[test]
fn a_command_whose_end_was_not_seen_is_not_approved_by_any_key() {
    let mut asked = Asked::with([writes(&long_command()), done()]);
    asked.ui.until_shown(COMMAND);
    asked.ui.types("\r");
    assert!(!asked.ui.screen().contains("THE-TAIL"), "{}", asked.ui.screen());
    asked.ui.until_shown("Press G to see the end, then y.");
    let unread =
        |screen: &str| screen.split_once(" more lines.")?.0.split_whitespace().last()?.parse::<usize>().ok();
    let all = unread(&asked.ui.screen()).unwrap();
    // The first key that the UI accepts.
    asked.ui.press_until_so("j", "another row", |screen| unread(screen).is_some_and(|rows| rows < all));
    let some = unread(&asked.ui.screen()).unwrap();
    // Keys are handled in order: when the last one has an effect, all earlier ones were handled.
    asked.ui.types("\r \r\n \r yj");
    asked.ui.until("yet another row", |screen| unread(screen).is_some_and(|rows| rows < some));
    assert!(asked.ui.screen().contains(COMMAND) && !asked.exists("ran"));
    asked.press_until("n", "denied");
    asked.ui.until_shown("Done.");
    assert!(!asked.exists("ran"));
    assert_eq!(asked.decisions().len(), 1);
    asked.leave();
}

#[test]
fn read_to_its_end_it_is_approved_and_runs() {
    let mut asked = Asked::with([writes(&long_command()), done()]);
    asked.ui.until_shown(COMMAND);
    asked.press_until("G", "THE-TAIL");
    asked.ui.press_until_so("y", "the end of the card", |screen| !screen.contains(COMMAND));
    asked.ui.until_shown("Done.");
    assert!(asked.exists("ran"));
    asked.leave();
}

#[test]
fn keys_that_were_typed_before_the_card_was_seen_do_not_answer_it() {
    let mut asked = Asked::with([writes("touch ran"), done()]);
    while !asked.ui.screen().contains(COMMAND) {
        asked.ui.types("y");
    }
    // Keys are handled in order: when this one counts, none of those before it did.
    asked.press_until("e", "no, because ›");
    assert!(!asked.exists("ran") && asked.decisions().is_empty());
    asked.ui.types("\r");
    asked.ui.until_shown("denied");
    asked.ui.until_shown("Done.");
    assert!(!asked.exists("ran"));
    asked.leave();
}

#[test]
fn what_is_pasted_without_brackets_answers_nothing() {
    let mut asked = Asked::with([writes("touch ran"), done()]);
    asked.ui.until_shown(COMMAND);
    // The key is accepted now.
    asked.press_until("e", "no, because ›");
    asked.ui.types("\x1b");
    asked.ui.until_shown("n no");
    for pasted in ["yes please\r", "\x1b]11;rgb:y/y/y\x1b\\\x1bP1$ry\x1b\\\x1b_y\x1b\\", "nnn"] {
        asked.ui.types(pasted);
    }
    asked.press_until("e", "no, because ›");
    assert!(!asked.exists("ran") && asked.decisions().is_empty());
    asked.ui.types("\r");
    asked.ui.until_shown("Done.");
    asked.leave();
}

#[test]
fn a_change_of_files_is_shown_and_is_what_happens() {
    let input = json!({"path": "new.txt", "content": "first\nsecond\n"});
    let mut asked = Asked::with([calls(&[("write_file", input)]), done()]);
    asked.ui.until_shown("Create new.txt?  +2");
    asked.ui.until_shown("+second");
    assert!(!asked.exists("new.txt"));
    asked.press_until("y", "allowed by you");
    asked.ui.until_shown("Done.");
    assert_eq!(asked.world.read("new.txt"), "first\nsecond\n");
    asked.leave();
}

#[test]
fn a_prefix_approved_for_the_session_asks_once() {
    let mut asked = Asked::with([
        writes("mkdir -p one"),
        writes("mkdir -p two"),
        writes("mkdir -p x && touch x/y"),
        done(),
    ]);
    asked.ui.until_shown(COMMAND);
    asked.press_until("s", "commands that begin with");
    asked.press_until("j", "▸ commands that begin with");
    asked.press_until("y", "approved for the session as 1");
    // The second command ran without a card, and the approval does not cover the third.
    asked.ui.until_shown(COMMAND);
    asked.ui.until_shown("touch x/y");
    assert!(asked.exists("one") && asked.exists("two") && !asked.exists("x"));
    asked.press_until("n", "denied");
    asked.ui.until_shown("Done.");
    asked.ui.types("\x15:grants\r");
    asked.ui.until_shown("1  ");
    asked.leave();
}

#[test]
fn a_word_goes_with_the_denial() {
    let mut asked = Asked::with([writes("touch ran"), done()]);
    asked.ui.until_shown(COMMAND);
    asked.press_until("e", "no, because ›");
    asked.ui.types("use the other directory\r");
    asked.ui.until_shown("Done.");
    assert!(asked.told().contains("use the other directory"));
    assert!(!asked.exists("ran"));
    asked.leave();
}

#[test]
fn a_terminal_that_is_too_small_can_still_say_no() {
    for (size, shown) in [((40, 10), "Run this command?"), ((20, 5), "n no")] {
        let mut asked = Asked::on(size, [writes("touch ran"), done()]);
        asked.ui.until_shown(shown);
        asked.ui.press_until_so("n", "the card is gone", |screen| !screen.contains(shown));
        asked.ui.resize(SIZE);
        asked.ui.until_shown("Done.");
        assert!(!asked.exists("ran"));
        asked.leave();
    }
}

#[test]
fn control_characters_of_a_command_are_shown_and_not_obeyed() {
    let command = "printf 'a\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}2J\rb' # \u{202e}evil\u{202c}";
    let mut asked = Asked::with([writes(command), done()]);
    asked.ui.until_shown(COMMAND);
    asked.ui.until_shown(r"\u{1b}]0;t\u{7}");
    asked.ui.until_shown(r"\u{202e}evil");
    assert_eq!(asked.ui.modes(), TAKEN);
    asked.press_until("n", "denied");
    asked.ui.until_shown("Done.");
    let written = asked.ui.text();
    assert!(!written.contains("\x1b]") && !written.contains(['\u{9b}', '\u{7}', '\u{202e}']));
    asked.leave();
}

#[test]
fn ending_while_it_is_asked_denies() {
    let asked = Asked::with([writes("touch ran"), done()]);
    asked.ui.until_shown(COMMAND);
    asked.ui.signal(Signal::SIGTERM);
    let Asked { world, ui, .. } = asked;
    let left = ui.end();
    assert_eq!((left.code, &left.modes[..]), (143, &[][..]));
    assert!(!world.project().join("ran").exists());
    wait_until("no process is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn two_requests_wait_in_line() {
    let call = |name| ("shell_exec", json!({"command": format!("touch {name}"), "access": "write"}));
    let mut asked = Asked::with([calls(&[call("first"), call("second")]), done()]);
    asked.ui.until_shown("touch first");
    asked.press_until("y", "touch second");
    assert!(asked.ui.screen().contains(COMMAND));
    asked.press_until("n", "denied");
    asked.ui.until_shown("Done.");
    assert!(asked.exists("first") && !asked.exists("second"));
    asked.leave();
}

#[test]
fn whoever_looks_elsewhere_is_called_in_our_own_words() {
    let command = "printf '\u{1b}]9;forged\u{7}'; touch ran";
    let mut asked = Asked::with([writes(command), done()]);
    asked.ui.until_shown(COMMAND);
    asked.press_until("n", "denied");
    asked.ui.until_shown("Done.");
    assert!(!String::from_utf8(asked.ui.bytes()).unwrap().contains("\x1b]9;"), "a person who types is there");
    asked.leave();
    let (world, server) = (World::new(User::Myself), model_of([writes(command), done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.types("go\r\x1b[O");
    ui.until_shown(COMMAND);
    ui.types("\x1b[I");
    let written = |ui: &Ui| String::from_utf8(ui.bytes()).unwrap();
    ui.until("the title that was", |_| written(&ui).contains("\x1b[23;0t\x1b[22;0t"));
    let all = written(&ui);
    assert_eq!(all.matches("\x07\x1b]9;Bailiwick: an approval waits for you\x1b\\").count(), 1, "{all:?}");
    assert!(
        all.contains("\x1b]2;Bailiwick: an approval waits for you\x1b\\") && !all.contains("\x1b]9;forged")
    );
    ui.signal(Signal::SIGTERM);
    ui.end();
}

const LINES: &str = "one\n2\n3\n4\n5\n6\n7\n8\nnine\n";

/// Starts a session in which the model tries to change the first and the last line of `lines.txt`.
fn changes_two_lines(world: &World, server: &ReplayServer, editor: &str) -> Ui {
    world.file("lines.txt", LINES);
    let mut command = world.ui(server, &[]);
    command.env_remove("VISUAL").env("EDITOR", editor);
    let mut ui = Ui::start(&command, SIZE);
    ui.types("go\r");
    ui.until_shown("Edit lines.txt?");
    // The UI does not accept keys at once.
    ui.press_until("h", "hunk 2 of 2");
    ui
}

fn two_changes() -> ReplayServer {
    let content = LINES.replace("one", "ONE").replace("nine", "NINE");
    model_of([calls(&[("write_file", json!({"path": "lines.txt", "content": content}))]), done()])
}

#[test]
fn one_hunk_of_a_change_is_approved_and_the_other_left_out() {
    let (world, server) = (World::new(User::Myself), two_changes());
    let mut ui = changes_two_lines(&world, &server, "false");
    ui.press_until(" ", "hunk 1 of 2 · left out");
    ui.press_until("y", "in part: 1 of 2 hunks");
    ui.until_shown("Done.");
    assert_eq!(world.read("lines.txt"), LINES.replace("nine", "NINE"));
    let told = String::from_utf8(server.requests().last().unwrap().body.to_vec()).unwrap();
    assert!(told.contains("The user approved 1 of 2 hunks"), "{told}");
    ui.types("\x15:q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn the_new_text_of_a_change_is_edited_before_it_is_approved() {
    let (world, server) = (World::new(User::Myself), two_changes());
    let mut ui = changes_two_lines(&world, &server, "sed -i s/NINE/mine/");
    ui.press_until("e", "the text as you edited it");
    ui.until_shown("+mine");
    ui.press_until("y", "in part: the text was edited");
    ui.until_shown("Done.");
    assert_eq!(world.read("lines.txt"), LINES.replace("one", "ONE").replace("nine", "mine"));
    ui.types("\x15:q\r");
    assert_eq!(ui.end().code, 0);
}
