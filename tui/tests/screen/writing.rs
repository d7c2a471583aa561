//! Tests of the prompt, the history, commands, and queued messages.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::{CallId, GrantId};
use ipc::image::Image;
use ipc::rights::{Grant, Network, RightsChange};
use protocol::approval::{ApprovalMode, ReviewDecision, SessionGrant};
use protocol::event::{ApprovalAnswered, DecidedBy, EndReason, EventKind, NoticeCode};
use protocol::frontend::{AgentAction, UserActionKind};
use tui::{Action, Msg};

use crate::seat::Seat;

fn prompt(text: &str) -> UserActionKind {
    UserActionKind::Agent(AgentAction::Prompt { text: text.to_owned(), images: vec![] })
}

#[test]
fn enter_sends_and_ctrl_j_does_not() {
    let mut seat = Seat::new(80, 24);
    seat.keys("one");
    seat.ctrl('j');
    seat.keys("two");
    assert_eq!(seat.told(), []);
    seat.keys("\n");
    assert_eq!(seat.told(), [prompt("one\ntwo")]);
}

#[test]
fn a_paste_does_not_submit_however_it_ends() {
    let mut seat = Seat::new(80, 24);
    let paste = format!("{}\r\n\r\n", "line\r\n".repeat(175_000));
    assert!(paste.len() > 1 << 20);
    seat.send(Msg::Paste(paste));
    assert_eq!(seat.told(), []);
    seat.keys("x\n");
    let told = seat.told();
    let [UserActionKind::Agent(AgentAction::Prompt { text, .. })] = &told[..] else {
        panic!("{} actions", told.len())
    };
    assert!(text.len() > 800_000 && text.ends_with("line\n\n\nx") && !text.contains('\r'));
}

#[test]
fn messages_wait_while_the_agent_works_and_go_one_by_one() {
    let mut seat = Seat::new(80, 24);
    seat.keys("one\ntwo\nthree\n");
    assert_eq!(seat.told(), [prompt("one")]);
    assert!(seat.screen().contains("queued › two") && seat.screen().contains("queued › three"));
    seat.end_turn(EndReason::Done);
    assert_eq!(seat.told(), [prompt("two")]);
    seat.end_turn(EndReason::Done);
    assert_eq!(seat.told(), [prompt("three")]);
}

#[test]
fn after_an_interruption_what_waited_is_given_back_and_not_sent() {
    let mut seat = Seat::new(80, 24);
    seat.keys("one\ntwo\n");
    seat.press(KeyCode::Esc);
    assert_eq!(seat.told(), [prompt("one"), UserActionKind::Agent(AgentAction::Interrupt)]);
    seat.press(KeyCode::Esc);
    assert_eq!(seat.told(), [], "asked for once");
    seat.end_turn(EndReason::Interrupted);
    assert_eq!(seat.told(), []);
    assert!(seat.screen().contains("› two"));
    seat.keys("\n");
    assert_eq!(seat.told(), [prompt("two")]);
}

#[test]
fn a_message_of_the_command_line_is_like_one_that_was_typed() {
    let mut seat = Seat::new(80, 24);
    seat.send(Msg::Submit("first".to_owned()));
    seat.keys("second\n");
    assert_eq!(seat.told(), [prompt("first")]);
    assert!(seat.screen().contains("queued › second"));
    seat.press(KeyCode::Up);
    seat.press(KeyCode::Up);
    assert!(seat.screen().contains("› first"));
}

#[test]
fn the_wheel_turns_what_is_before_the_person() {
    let mut seat = Seat::new(80, 24);
    seat.stream(&"line\n".repeat(60));
    seat.send(Msg::Wheel(-1));
    assert!(seat.screen().contains("3 lines below - End to follow"), "{}", seat.screen());
    seat.send(Msg::Wheel(1));
    assert!(!seat.screen().contains("below"));
    seat.ask_command(&"echo\n".repeat(60));
    assert!(!seat.screen().contains("allows    write"));
    seat.send(Msg::Wheel(40));
    assert!(seat.screen().contains("allows    write"));
}

#[test]
fn history_keeps_the_draft() {
    let mut seat = Seat::new(80, 24);
    seat.keys("first\n");
    seat.end_turn(EndReason::Done);
    seat.keys("draft");
    seat.press(KeyCode::Up);
    assert!(seat.screen().contains("› first"));
    seat.press(KeyCode::Down);
    assert!(seat.screen().contains("› draft"));
}

#[test]
fn typed_commands_become_actions() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":net on\n:mode auto\n:revoke 3\n:compact\n");
    let change = RightsChange::Network { net: Network::On, reach: None };
    let revoke = UserActionKind::Agent(AgentAction::RevokeGrant { id: GrantId(3) });
    let mode = UserActionKind::Agent(AgentAction::SetMode { mode: ApprovalMode::Auto });
    assert_eq!(
        seat.told(),
        [
            UserActionKind::Agent(AgentAction::SetRights { change }),
            mode,
            revoke,
            UserActionKind::Agent(AgentAction::Compact)
        ]
    );
    seat.keys(":q\n");
    assert_eq!(seat.actions, [Action::Quit]);
}

#[test]
fn a_slash_before_letters_is_a_command_and_never_a_message() {
    let mut seat = Seat::new(100, 40);
    seat.keys("/net on\n/help\n");
    seat.press(KeyCode::Esc);
    seat.keys("/zz\n/zz it\n");
    let change = RightsChange::Network { net: Network::On, reach: None };
    assert_eq!(
        seat.told(),
        [UserActionKind::Agent(AgentAction::SetRights { change })],
        "no message among them"
    );
    for (typed, line) in [
        ("/fly", "! no command /fly (see :help)"),
        (
            "/tmp is full",
            "! no command /tmp (see :help); to send the line as text, press Up and put a space before it",
        ),
    ] {
        seat.keys(&format!("{typed}\n"));
        assert!(seat.screen().contains(line), "{line}\n{}", seat.screen());
    }
    assert_eq!(seat.told(), []);
    seat.press(KeyCode::Up);
    assert!(seat.screen().contains("› /tmp is full"), "the line is not lost\n{}", seat.screen());
    seat.ctrl('c');
    seat.keys("/quit\n");
    assert_eq!(seat.actions, [Action::Quit]);
}

#[test]
fn a_path_a_space_and_a_pasted_text_are_messages() {
    for text in ["/etc/hosts says 127.0.0.1", " /help", "/help!", " !ls", " ?", "/help\nme", "!ls\nand more"]
    {
        let mut seat = Seat::new(80, 24);
        seat.send(Msg::Paste(text.to_owned()));
        seat.press(KeyCode::Enter);
        let prompt = prompt(text);
        assert_eq!(seat.told(), [prompt], "{text:?}");
    }
}

#[test]
fn a_question_mark_at_an_empty_prompt_shows_the_help() {
    let mut seat = Seat::new(80, 24);
    seat.keys("?");
    let screen = seat.screen();
    let rows: Vec<_> = screen.lines().skip_while(|row| !row.starts_with("  / :")).take(12).collect();
    assert_snapshot!(rows.join("\n"), @"
    / :           commands
    @             a file of the project
    !             a command of your own, in the sandbox
    Alt+Enter     new line
    Ctrl+G        write the message in $EDITOR
    ↑ Ctrl+R      earlier messages; search them
    Shift+Tab     from mode ask to auto, and back
    PageUp Alt+↑  read what is above; by message
    Ctrl+O        show or fold the output of tools
    Esc           stop the turn; when idle: keys are commands
    Ctrl+C        empty the prompt; twice: end the session
    Enter         now: all commands and all keys (:help)
    ");
    assert!(screen.contains("› ?"), "{screen}");
    seat.keys("why?\n");
    assert_eq!(seat.told(), [prompt("?why?")], "nothing that was typed is lost");
    seat.keys("?");
    seat.press(KeyCode::Esc);
    assert!(!seat.screen().contains("twice: end the session") && !seat.screen().contains("› ?"));
    seat.keys("?\n");
    assert!(seat.screen().starts_with("commands\n  :help "), "{}", seat.screen());
    assert_eq!(seat.told(), []);
}

#[test]
fn a_wrong_mode_is_named_with_those_to_choose_from() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":mode plan\n");
    assert!(seat.screen().contains(r#"! no mode "plan"; choose ask, auto or deny"#), "{}", seat.screen());
}

#[test]
fn wrong_commands_say_what_is_right() {
    let mut seat = Seat::new(80, 24);
    for (typed, line) in [
        ("net maybe", "! \"maybe\" is neither off nor on, and a host without a dot needs a port"),
        ("fly", "! no command :fly (see :help)"),
        ("q now", "! cannot use \"now\": :q takes no argument"),
        ("revoke x", "! cannot use \"x\": the command is :revoke N"),
        ("compact all", "! cannot use \"all\": :compact takes no argument"),
    ] {
        seat.keys(&format!(":{typed}\n"));
        assert!(seat.row(20).starts_with(line), "{line}\n{}", seat.screen());
        seat.wait(5999);
        assert!(seat.screen().contains(line));
        seat.wait(1);
        assert!(!seat.screen().contains(line), "the conversation has none of it\n{}", seat.screen());
        assert_eq!(seat.told(), []);
    }
    assert_eq!(seat.tick(), None);
    assert_eq!(seat.actions, []);
}

#[test]
fn a_refused_change_is_no_longer_waited_for() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":net on\n");
    assert!(seat.screen().contains("net off → on …"));
    let (code, message) =
        (NoticeCode::RightsRefused, "the network stays off while a plan is made".to_owned());
    seat.log(EventKind::Notice { code, message });
    assert!(
        seat.screen().contains("net off ·") && seat.screen().contains("while a plan is made"),
        "{}",
        seat.screen()
    );
}

#[test]
fn the_modes_are_visible_and_lead_to_each_other() {
    let mut seat = Seat::new(80, 24);
    let mode = |seat: &Seat| seat.row(23).split_whitespace().next().unwrap().to_owned();
    let mut seen = vec![mode(&seat)];
    for key in [KeyCode::Esc, KeyCode::Char(':'), KeyCode::Esc, KeyCode::Char('i')] {
        seat.press(key);
        seen.push(mode(&seat));
    }
    assert_eq!(seen, ["INSERT", "NORMAL", "COMMAND", "NORMAL", "INSERT"]);
}

#[test]
fn the_caret_stands_at_the_end_of_what_is_typed() {
    let mut seat = Seat::new(80, 24);
    seat.keys("ab漢");
    seat.terminal.backend_mut().assert_cursor_position((6, 22));
}

#[test]
fn ctrl_d_leaves_an_empty_prompt_only() {
    let mut seat = Seat::new(80, 24);
    seat.keys("x");
    seat.ctrl('d');
    assert_eq!(seat.actions, []);
    seat.ctrl('c');
    seat.ctrl('d');
    assert_eq!(seat.actions, [Action::Quit]);
}

#[test]
fn what_was_scrolled_up_stays_while_more_comes() {
    let mut seat = Seat::new(80, 24);
    seat.stream(&(0..100).map(|n| ["line ", &n.to_string(), "\n"].concat()).collect::<String>());
    seat.press(KeyCode::PageUp);
    let before = seat.row(0);
    seat.stream("more\nand more\n");
    assert_eq!(seat.row(0), before);
    assert!(seat.screen().contains(" lines below - End to follow"));
    seat.press(KeyCode::End);
    assert!(seat.screen().contains("and more") && !seat.screen().contains("below"));
    seat.press(KeyCode::PageUp);
    seat.press(KeyCode::Esc);
    assert!(seat.screen().contains(" lines below - G to follow"), "{}", seat.screen());
    seat.keys("G");
    assert!(seat.screen().contains("and more"));
}

pub(crate) fn picture() -> Image {
    picture::read(&include_bytes!("../../../fixtures/images/shapes.png")[..]).unwrap()
}

#[test]
fn a_picture_goes_with_the_next_message_and_no_other() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":image ~/my shapes.png\n");
    assert_eq!(seat.actions, [Action::Attach("~/my shapes.png".into())]);
    seat.send(Msg::Attached(Ok(picture())));
    assert!(
        seat.screen().contains("[image png 48×32, 192 bytes] goes with the next message"),
        "{}",
        seat.screen()
    );
    seat.told();
    seat.keys("what is it?\nand now?\n");
    let first = UserActionKind::Agent(AgentAction::Prompt {
        text: "what is it?".to_owned(),
        images: vec![picture()],
    });
    assert_eq!(seat.told(), [first]);
    assert!(!seat.screen().contains("goes with the next message"));
    seat.end_turn(EndReason::Done);
    assert_eq!(seat.told(), [prompt("and now?")]);
}

#[test]
fn a_picture_alone_is_a_message_and_the_transcript_says_what_it_was() {
    let mut seat = Seat::new(80, 24);
    seat.send(Msg::Attached(Ok(picture())));
    seat.keys("\n");
    assert_eq!(
        seat.told(),
        [UserActionKind::Agent(AgentAction::Prompt { text: String::new(), images: vec![picture()] })]
    );
    seat.log(EventKind::UserMessage { text: String::new(), images: vec![picture()] });
    assert!(seat.screen().contains("[image png 48×32, 192 bytes]"), "{}", seat.screen());
}

#[test]
fn a_picture_can_be_taken_back_and_a_failure_is_said() {
    let mut seat = Seat::new(80, 24);
    seat.send(Msg::Attached(Ok(picture())));
    seat.keys(":image\n");
    assert!(seat.screen().contains("no longer attached: [image png 48×32, 192 bytes]"));
    seat.send(Msg::Attached(Err("`x.png` is not a regular file".to_owned())));
    assert!(seat.screen().contains("`x.png` is not a regular file"));
    seat.keys("go\n");
    assert_eq!(seat.told(), [prompt("go")]);
}

#[test]
fn after_an_interruption_pictures_are_given_back_too() {
    let mut seat = Seat::new(80, 24);
    seat.keys("one\n");
    seat.send(Msg::Attached(Ok(picture())));
    seat.keys("look\n");
    assert!(seat.screen().contains("queued › [image png 48×32, 192 bytes] look"));
    seat.press(KeyCode::Esc);
    seat.end_turn(EndReason::Interrupted);
    seat.told();
    seat.keys("\n");
    assert_eq!(
        seat.told(),
        [UserActionKind::Agent(AgentAction::Prompt { text: "look".to_owned(), images: vec![picture()] })]
    );
}

#[test]
fn a_call_that_a_grant_allows_names_the_grant() {
    let mut seat = Seat::new(80, 24);
    let covers = "commands that begin with: cargo test".to_owned();
    let given = Grant { write: vec!["/home/me/project".into()], ..Grant::default() };
    let grant = SessionGrant { id: GrantId(1), covers, grant: Some(given.into()) };
    seat.log(EventKind::GrantAdded(grant));
    seat.call(9, "shell_exec", &serde_json::json!({"command": "cargo test"}));
    seat.log(EventKind::ApprovalAnswered(ApprovalAnswered {
        call: CallId(9),
        id: None,
        decision: ReviewDecision::Approved,
        by: DecidedBy::SessionGrant(GrantId(1)),
        cause: None,
        in_part: None,
    }));
    assert!(
        seat.screen().contains("→ run cargo test · allowed by approval 1 for this session\n"),
        "{}",
        seat.screen()
    );
    assert_eq!(seat.screen().matches("allowed by").count(), 1, "{}", seat.screen());
}

#[test]
fn queued_messages_come_back_after_an_interrupt() {
    let mut seat = Seat::new(80, 24);
    seat.keys("first\nsecond\n");
    seat.press(KeyCode::Esc);
    seat.end_turn(EndReason::Interrupted);
    assert!(seat.screen().contains("· queued messages moved back to the prompt"), "{}", seat.screen());
    assert!(seat.screen().contains("› second"), "{}", seat.screen());
}
