//! Tests that the text of the person's own commands is placed at the prompt and never sent automatically.

use crossterm::event::KeyCode;
use protocol::event::{EndReason, EventKind, NoticeCode};
use protocol::frontend::{AgentAction, UserActionKind};
use protocol::own_command::OwnCommand;
use tui::Start;

use crate::seat::{Seat, start};

fn command(name: &str, text: &str) -> OwnCommand {
    OwnCommand {
        name: name.to_owned(),
        description: format!("about {name}\u{1b}[2J"),
        text: text.to_owned(),
        reads: false,
        model: None,
        of_project: true,
    }
}

fn seat() -> Seat {
    let look = OwnCommand { reads: true, ..command("look_at", "Look at $1.") };
    let other = OwnCommand { model: Some("other".to_owned()), ..command("other", "Go") };
    let commands = vec![look, other, command("shell", "!rm -rf $ARGUMENTS"), command("slash", "/mode auto")];
    Seat::from(Start { commands, ..start((80, 20)) })
}

fn message(text: &str) -> UserActionKind {
    UserActionKind::Agent(AgentAction::Prompt { text: text.to_owned(), images: vec![] })
}

fn reading(text: &str) -> UserActionKind {
    UserActionKind::Agent(AgentAction::PromptReading {
        text: text.to_owned(),
        images: vec![],
        offline: false,
    })
}

fn model(name: &str) -> UserActionKind {
    UserActionKind::SetModel { model: name.to_owned() }
}

#[test]
fn a_text_is_listed_shown_and_sent_by_the_person_alone() {
    let mut seat = seat();
    seat.keys("/look");
    let screen = seat.screen();
    assert!(screen.contains("/look_at") && screen.contains("about look_at"), "{screen}");
    seat.keys("_at src/a.rs\n");
    assert!(seat.told().is_empty());
    let screen = seat.screen();
    assert!(screen.contains("› Look at src/a.rs."), "{screen}");
    assert!(screen.contains("/look_at · only reads · Enter sends it"), "{screen}");
    seat.keys(" Please.\n");
    assert_eq!(seat.told(), [reading("Look at src/a.rs. Please.")]);
    seat.end_turn(EndReason::Done);
    seat.keys("and now\n");
    assert_eq!(seat.told(), [message("and now")], "the next message is an ordinary one");
}

#[test]
fn no_text_of_a_project_is_a_command_of_the_persons() {
    let mut seat = seat();
    seat.keys("/shell /\n");
    assert!(seat.screen().contains("› !rm -rf /"), "{}", seat.screen());
    seat.keys("\n");
    assert_eq!(seat.told(), [message("!rm -rf /")]);
    seat.end_turn(EndReason::Done);
    seat.keys("/slash\n\n");
    assert_eq!(seat.told(), [message("/mode auto")]);
}

#[test]
fn a_queued_text_keeps_what_it_narrows_and_a_deleted_one_narrows_nothing() {
    let mut seat = seat();
    seat.keys("go\n/look_at a\n\n");
    assert_eq!(seat.told(), [message("go")]);
    seat.end_turn(EndReason::Interrupted);
    assert!(seat.screen().contains("only reads"), "{}", seat.screen());
    seat.keys("\n");
    assert_eq!(seat.told(), [reading("Look at a.")]);
    seat.end_turn(EndReason::Done);
    seat.keys("/look_at a\n");
    seat.ctrl('c');
    assert!(!seat.screen().contains("only reads"), "{}", seat.screen());
    seat.keys("go\n");
    assert_eq!(seat.told(), [message("go")]);
}

#[test]
fn a_model_answers_in_that_turn_alone() {
    let mut seat = seat();
    seat.keys(":other\n");
    seat.press(KeyCode::Enter);
    assert_eq!(seat.told(), [model("other"), message("Go")]);
    seat.end_turn(EndReason::Done);
    assert_eq!(seat.told(), [model("claude-opus-4-5")]);
}

#[test]
fn a_model_that_is_refused_is_told_in_the_transcript_and_changed_no_more() {
    let mut seat = seat();
    seat.keys(":other\n");
    seat.press(KeyCode::Enter);
    assert_eq!(seat.told(), [model("other"), message("Go")]);
    let refused = "cannot change the model: other is asked at another address".to_owned();
    seat.log(EventKind::Notice { code: NoticeCode::ModelRefused, message: refused.clone() });
    seat.end_turn(EndReason::Done);
    assert!(seat.told().is_empty());
    assert!(seat.screen().contains(&refused), "{}", seat.screen());
}
