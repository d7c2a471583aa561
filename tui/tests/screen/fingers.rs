//! Tests of keys that work as in other programs: the list of commands, Shift+Tab, Ctrl+C twice, Esc.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use ipc::rights::{Network, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::event::{EndReason, EventKind};
use protocol::frontend::{AgentAction, UserActionKind};
use tui::{Action, Msg, Start};

use crate::seat::{Seat, start};

fn above_status(seat: &Seat) -> String {
    let screen = seat.screen();
    let rows: Vec<_> = screen.lines().collect();
    rows[..rows.len() - 2].join("\n")
}

#[test]
fn a_slash_opens_the_list_of_commands() {
    let mut seat = Seat::new(90, 28);
    seat.keys("/");
    assert_snapshot!(above_status(&seat), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    ▸ /help                     show all commands and keys
      /model NAME               choose the model; alone: from a list
      /net on|off|HOSTS         set network access, +HOST adds a host
      /mode ask|auto|deny       ask first, allow changes in the project, or deny
      /access                   show the agent's access, and how to change it
      /diff files|steps         show the changes of the session; alone: by file
      /plan TEXT                make a plan; without TEXT: show the plan
      /review BRANCH|COMMIT     review a change; alone: uncommitted changes
      /findings                 list the findings of the last review
      /rewind                   restore files and conversation to before a message
      /resume SESSION           continue a session; alone: from a list
      /context                  show what fills the model's context window
      /cost                     show tokens and money, by agent
      /compact                  replace the conversation by a summary
      /clear                    start an empty conversation in this session
      /tasks                    show the agent's list of tasks
      /agents                   list the agents: open, message or stop an agent
      /copy                     copy the last answer (or the found line)
      /select                   select lines of the transcript to copy
      /allow ACCESS             allow write PATH, socket PATH or net
      /disallow ACCESS          withdraw what was allowed
      /image PATH               attach a picture; without PATH: detach it
      ↓ 7 more
    ──────────────────────────────────────────────────────────────────────────────────────────
    ");
    seat.keys("a");
    assert_snapshot!(above_status(&seat), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit










    ▸ /access                   show the agent's access, and how to change it
      /agents                   list the agents: open, message or stop an agent
      /allow ACCESS             allow write PATH, socket PATH or net
      /agent ID                 show an agent; your messages then go there
      /plan TEXT                make a plan; without TEXT: show the plan
      /compact                  replace the conversation by a summary
      /clear                    start an empty conversation in this session
      /tasks                    show the agent's list of tasks
      /disallow ACCESS          withdraw what was allowed
      /image PATH               attach a picture; without PATH: detach it
      /edit-plan                edit the plan waiting for approval, in $EDITOR
    ──────────────────────────────────────────────────────────────────────────────────────────
    ");
    seat.press(KeyCode::Down);
    seat.press(KeyCode::Tab);
    assert_snapshot!(above_status(&seat), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network. Secrets hidden.
    · try: fix the failing test · @README.md explain this · /plan add a flag
    · / commands · ? keys · Alt+Enter new line · Shift+Tab mode · Esc stop · :q quit




















    ▸ /agents                   list the agents: open, message or stop an agent
    ──────────────────────────────────────────────────────────────────────────────────────────
    ");
    assert_eq!(seat.told(), []);
}

#[test]
fn the_commands_used_last_stand_first_but_not_the_one_that_quits() {
    let history = ["/cost", "/net on", "a message", "/q", "/cost", "/unheard of"].map(str::to_owned);
    let mut seat = Seat::from(Start { history: history.into(), ..start((60, 12)) });
    seat.keys(":log\n");
    seat.press(KeyCode::Esc);
    seat.keys("/");
    let listed = |seat: &Seat| -> Vec<String> {
        let screen = seat.screen();
        let rows = screen.lines().filter(|row| row.starts_with("  /") || row.starts_with("▸ /"));
        rows.map(|row| row.split_whitespace().find(|word| word.starts_with('/')).unwrap().to_owned())
            .collect()
    };
    assert_eq!(listed(&seat)[..5], ["/log", "/cost", "/net", "/help", "/model"]);
    seat.keys("\n");
    assert!(seat.screen().contains("› /log"), "a bare sign runs nothing\n{}", seat.screen());
    assert_eq!(listed(&seat).last().unwrap(), "/log");
}

#[test]
fn a_list_that_is_too_long_says_so_and_a_row_that_is_too_wide_too() {
    let mut seat = Seat::new(40, 12);
    seat.keys("/");
    assert_snapshot!(above_status(&seat), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each
    ▸ /help           show all commands and…
      /model NAME     choose the model; alo…
      /net on|off|HOSTS  set network access…
      /mode ask|auto|deny  ask first, allow…
      /access         show the agent's acce…
      /diff files|steps  show the changes o…
      ↓ 23 more
    ────────────────────────────────────────
    ");
    (0..9).for_each(|_| seat.press(KeyCode::Down));
    assert_snapshot!(above_status(&seat), @"
    bailiwick in /home/me/project
    · Reads this project, asks before each
      /access         show the agent's acce…
      /diff files|steps  show the changes o…
      /plan TEXT      make a plan; without …
      /review BRANCH|COMMIT  review a chang…
      /findings       list the findings of …
    ▸ /rewind         restore files and con…
      ↑ 4 · ↓ 19 more
    ────────────────────────────────────────
    ");
    seat.press(KeyCode::Up);
    (0..9).for_each(|_| seat.press(KeyCode::Up));
    assert!(seat.screen().contains("↑ ") && !seat.screen().contains("↓ "), "{}", seat.screen());
}

#[test]
fn the_descriptions_of_commands_stand_below_each_other_unless_the_screen_is_very_narrow() {
    for width in (50..=75).chain([90, 120]) {
        let mut seat = Seat::new(width, 50);
        seat.keys("/");
        let screen = seat.screen();
        let rows = screen.lines().skip_while(|row| !row.starts_with("▸ /"));
        let rows = rows.take_while(|row| row.starts_with("  /") || row.starts_with("▸ /"));
        let column = |row: &str| {
            let row = row.replacen("▸", " ", 1);
            let typed = row.trim_start();
            let end = typed.find("  ").unwrap();
            let about = typed.get(end..).unwrap();
            end + about.len() - about.trim_start().len()
        };
        let columns: Vec<_> = rows.map(column).collect();
        assert!(columns.len() > 20, "{width}\n{screen}");
        assert!(columns.windows(2).all(|two| two[0] == two[1]), "{width}: {columns:?}\n{screen}");
    }
}

#[test]
fn enter_runs_the_chosen_command_and_completes_one_that_needs_more() {
    let mut seat = Seat::new(90, 24);
    seat.keys("/acc\n");
    assert!(seat.screen().contains("access of the agent"), "{}", seat.screen());
    seat.keys("/ne\n");
    assert_eq!(seat.told(), []);
    assert!(
        seat.screen().contains("› /net") && seat.screen().contains("/net on|off|HOSTS"),
        "{}",
        seat.screen()
    );
    seat.keys("on\n");
    let change = RightsChange::Network { net: Network::On, reach: None };
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::SetRights { change })]);
    seat.keys(":compa");
    seat.press(KeyCode::Tab);
    assert!(seat.screen().contains(":compact"), "{}", seat.screen());
    seat.press(KeyCode::Enter);
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Compact)]);
}

#[test]
fn esc_closes_the_list_and_leaves_the_text() {
    let mut seat = Seat::new(90, 24);
    seat.keys("/he");
    assert!(seat.screen().contains("show all commands"));
    seat.press(KeyCode::Esc);
    assert!(!seat.screen().contains("show all commands") && seat.screen().contains("› /he"));
    assert!(seat.screen().contains(" INSERT "));
    seat.keys("y\n");
    assert!(seat.screen().contains("no command /hey"), "{}", seat.screen());
    seat.keys("/he");
    assert!(seat.screen().contains("show all commands"), "the next command has the list again");
}

#[test]
fn the_list_does_not_hold_up_the_history() {
    let mut seat = Seat::new(90, 24);
    seat.keys("first\n");
    seat.end_turn(EndReason::Done);
    seat.keys("/rights\n");
    seat.press(KeyCode::Esc);
    seat.press(KeyCode::Up);
    assert!(seat.screen().contains("› /rights") && !seat.screen().contains("show the access"));
    seat.press(KeyCode::Up);
    assert!(seat.screen().contains("› first"), "{}", seat.screen());
}

#[test]
fn shift_tab_goes_from_ask_to_auto_and_back() {
    let mut seat = Seat::new(80, 24);
    let shift_tab = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
    seat.send(Msg::Key(shift_tab));
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::SetMode { mode: ApprovalMode::Auto })]);
    assert!(seat.screen().contains("ask → auto …"));
    seat.send(Msg::Key(shift_tab));
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::SetMode { mode: ApprovalMode::Ask })]);
    seat.send(Msg::KeyOfMany(shift_tab));
    assert_eq!(seat.told(), [], "the bytes of a paste change no mode");
}

#[test]
fn shift_tab_does_nothing_while_a_request_waits() {
    let mut seat = Seat::new(80, 24);
    seat.ask_command("ls");
    seat.wait(5000);
    seat.send(Msg::Key(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT)));
    assert_eq!(seat.told(), []);
}

#[test]
fn a_view_leads_back_to_the_mode_it_was_opened_in() {
    for view in ["log", "rewind", "agents", "help"] {
        let mut seat = Seat::new(80, 24);
        seat.keys("hello\n");
        seat.log(EventKind::UserMessage { text: "hello".to_owned(), images: vec![] });
        seat.end_turn(EndReason::Done);
        let closes = |seat: &mut Seat| {
            seat.keys(&format!(":{view}\n"));
            seat.press(KeyCode::Esc);
        };
        closes(&mut seat);
        seat.keys("and now");
        assert!(seat.screen().contains("› and now"), "{view}: {}", seat.screen());
        seat.ctrl('c');
        seat.press(KeyCode::Esc);
        closes(&mut seat);
        seat.slowly("i");
        seat.keys("and more");
        assert!(seat.screen().contains("› and more"), "{view}: {}", seat.screen());
    }
}

#[test]
fn ctrl_c_twice_ends_the_session_and_twice_with_a_pause_does_not() {
    let mut seat = Seat::new(80, 24);
    seat.keys("draft");
    seat.ctrl('c');
    assert!(!seat.screen().contains("draft") && !seat.screen().contains("again ends"));
    seat.ctrl('c');
    assert!(seat.screen().contains("Ctrl+C again ends the session"), "{}", seat.screen());
    assert_eq!(seat.tick().unwrap().as_millis(), 3000);
    seat.wait(2999);
    assert!(seat.screen().contains("again ends the session"), "{}", seat.screen());
    seat.wait(1);
    assert!(!seat.screen().contains("again ends the session"), "{}", seat.screen());
    assert_eq!(seat.tick(), None, "one timer is enough");
    seat.ctrl('c');
    assert_eq!(seat.actions, []);
    seat.keys("x");
    seat.ctrl('c');
    assert_eq!(seat.actions, [], "another key came between");
    seat.ctrl('c');
    seat.ctrl('c');
    assert_eq!(seat.actions, [Action::Quit]);
}

#[test]
fn ctrl_c_stops_the_turn_before_it_ends_the_session() {
    let mut seat = Seat::new(80, 24);
    seat.keys("go\n");
    seat.told();
    seat.ctrl('c');
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Interrupt)]);
    seat.ctrl('c');
    assert_eq!(seat.actions, []);
    seat.ctrl('c');
    assert_eq!(seat.actions, [Action::Quit]);
}

#[test]
fn esc_stops_the_turn_and_the_draft_goes_on() {
    let mut seat = Seat::new(80, 24);
    seat.keys("go\ndraft");
    seat.told();
    seat.press(KeyCode::Esc);
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Interrupt)]);
    seat.keys("!");
    assert!(seat.screen().contains("› draft!") && seat.screen().contains(" INSERT "), "{}", seat.screen());
}

#[test]
fn normal_says_so_and_keys_without_a_meaning_there_too() {
    let mut seat = Seat::new(80, 24);
    seat.press(KeyCode::Esc);
    assert!(seat.row(21).contains(" i writes · : commands · ? keys "), "{}", seat.screen());
    seat.keys(" ");
    assert!(seat.row(21).contains(" Space does nothing in NORMAL · i writes"), "{}", seat.screen());
    seat.slowly("i");
    assert!(!seat.row(21).contains("writes"));
}

#[test]
fn a_paste_of_many_lines_stands_as_a_few_words_and_is_sent_whole() {
    let mut seat = Seat::new(80, 24);
    let pasted = "\x1b[2Jline\n".repeat(42);
    seat.keys("see ");
    seat.send(Msg::Paste(pasted.clone()));
    seat.keys(" why?");
    assert_eq!(seat.row(22), "› see [42 lines pasted] why?");
    seat.keys("\n");
    let text = format!("see {pasted} why?");
    let told = UserActionKind::Agent(AgentAction::Prompt { text: text.clone(), images: vec![] });
    assert_eq!(seat.told(), [told]);
    // The log has the whole message; the transcript shows the paste only when it is unfolded.
    seat.log(EventKind::UserMessage { text: text.clone(), images: vec![] });
    assert!(seat.screen().contains("› see [42 lines pasted] why?\n"), "{}", seat.screen());
    assert!(!seat.screen().contains("[2Jline"), "{}", seat.screen());
    seat.ctrl('o');
    assert!(
        seat.screen().contains("[2Jline") && !seat.screen().contains("lines pasted"),
        "{}",
        seat.screen()
    );
    seat.ctrl('o');
    // A message from an earlier run of the session shows its beginning.
    seat.log(EventKind::UserMessage { text, images: vec![] });
    assert!(seat.screen().contains("  … 33 more lines (Ctrl+O)\n"), "{}", seat.screen());
    seat.end_turn(EndReason::Done);
    seat.send(Msg::Paste(pasted));
    seat.press(KeyCode::Backspace);
    assert_eq!(seat.row(22), "›");
}

#[test]
fn ctrl_g_hands_the_whole_message_to_an_editor_and_takes_its_text() {
    let mut seat = Seat::new(80, 24);
    seat.keys("fix ");
    seat.send(Msg::Paste("line\n".repeat(12)));
    seat.send(Msg::KeyOfMany(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL)));
    assert_eq!(seat.actions, [], "the bytes of a paste open no editor");
    seat.ctrl('g');
    assert_eq!(seat.actions, [Action::EditPrompt(format!("fix {}", "line\n".repeat(12)))]);
    seat.send(Msg::PromptEdited(Err("vi ended with 1".to_owned())));
    assert!(seat.screen().contains("vi ended with 1") && seat.screen().contains("› fix [12 lines pasted]"));
    seat.send(Msg::PromptEdited(Ok(Some("fix it\nnow\n".to_owned()))));
    assert!(seat.screen().contains("› fix it\n  now"), "{}", seat.screen());
}

#[test]
fn a_text_is_searched_for_in_normal() {
    let mut seat = Seat::new(60, 14);
    let lines = (0..60).map(|n| format!("row {n}{}\n\n", if n % 20 == 7 { " with a Needle" } else { "" }));
    seat.stream(&lines.collect::<String>());
    seat.press(KeyCode::Esc);
    seat.keys("/needle");
    assert_eq!(seat.row(12), "/needle");
    seat.keys("\n");
    assert_snapshot!(seat.screen(), @"
      row 6

      row 7 with a Needle

      row 8

      row 9

      row 10

    ── line 1 of 3 · n next · N previous · 97 lines below - G t…
    ›
     NORMAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    seat.keys("n");
    assert!(
        seat.screen().contains("row 27 with") && seat.screen().contains(" line 2 of 3 · n next"),
        "{}",
        seat.screen()
    );
    seat.keys("NN");
    assert!(
        seat.screen().contains("row 47 with") && seat.screen().contains(" line 3 of 3 "),
        "{}",
        seat.screen()
    );
    seat.keys("n/NEEDLE\n");
    assert!(seat.screen().contains(" no line has \"NEEDLE\" "), "{}", seat.screen());
    seat.keys("/\x1b");
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" NORMAL "));
    assert_eq!(seat.told().len(), 0);
}

#[test]
fn n_without_a_search_says_how_to_search() {
    let mut seat = Seat::new(80, 24);
    seat.press(KeyCode::Esc);
    seat.keys("n");
    assert!(seat.screen().contains(" / searches the transcript for a text "), "{}", seat.screen());
}

#[test]
fn ctrl_r_looks_up_a_message_of_any_session() {
    let history = ["fix the parser", "run \x1b[2J the tests", "fix the lexer", "/net on"].map(str::to_owned);
    let mut seat = Seat::from(Start { history: history.into(), ..start((60, 14)) });
    seat.keys("draft");
    seat.ctrl('r');
    seat.keys("t");
    assert_snapshot!(seat.screen(), @r"
    bailiwick in /home/me/project
    · Reads this project, asks before each change. No network.
      Secrets hidden.
    · try: fix the failing test · @README.md explain this ·
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit
      fix the parser
      run \u{1b}[2J the tests
      fix the lexer
    ▸ /net on
    ────────────────────────────────────────────────────────────
    history › t
     INSERT  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
    seat.keys("h");
    seat.press(KeyCode::Backspace);
    seat.press(KeyCode::Backspace);
    seat.keys("fix");
    seat.ctrl('r');
    seat.press(KeyCode::Enter);
    assert_eq!((seat.row(12), seat.told()), ("› fix the parser".to_owned(), vec![]));
    seat.ctrl('r');
    seat.keys("/:?");
    assert_eq!(seat.row(12), "history › /:?");
    seat.press(KeyCode::Esc);
    assert_eq!(seat.row(12), "› fix the parser");
    assert!(seat.screen().contains(" INSERT "));
}

#[test]
fn the_last_message_of_an_earlier_session_is_one_key_away() {
    let history = vec!["first".to_owned()];
    let mut seat = Seat::from(Start { history, ..start((60, 14)) });
    seat.press(KeyCode::Up);
    assert_eq!(seat.row(12), "› first");
}
