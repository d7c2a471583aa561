use crossterm::event::KeyCode;
use protocol::event::{EndReason, EventKind};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::json;
use tui::Msg;

use crate::seat::Seat;
use crate::writing::picture;

fn command(command: &str) -> UserActionKind {
    UserActionKind::Agent(AgentAction::RunCommand { command: command.to_owned() })
}

#[test]
fn a_command_of_ones_own_runs_and_shows_what_it_printed() {
    let mut seat = Seat::new(60, 16);
    seat.keys("!make test\n");
    assert_eq!(seat.told(), [command("make test")]);
    assert!(seat.screen().contains("Esc interrupts"), "{}", seat.screen());
    seat.log(EventKind::UserMessage { text: "!make test".to_owned(), images: vec![] });
    seat.call(1, "shell_exec", &json!({ "command": "make test", "access": "write" }));
    seat.press(KeyCode::Esc);
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Interrupt)]);
}

#[test]
fn it_waits_for_the_turn_as_a_message_does_and_comes_back_as_it_was_typed() {
    let mut seat = Seat::new(60, 16);
    seat.keys("go\n!ls\n!pwd\n");
    assert_eq!(seat.told().len(), 1);
    assert!(seat.screen().contains("queued › !ls"), "{}", seat.screen());
    seat.end_turn(EndReason::Done);
    assert_eq!(seat.told(), [command("ls")]);
    seat.end_turn(EndReason::Interrupted);
    assert!(seat.screen().contains("› !pwd"), "{}", seat.screen());
    seat.keys("\n");
    assert_eq!(seat.told(), [command("pwd")]);
}

#[test]
fn an_attached_picture_stays_for_the_message_and_nothing_is_no_command() {
    let mut seat = Seat::new(150, 16);
    seat.send(Msg::Attached(Ok(picture())));
    seat.keys("!\n");
    assert_eq!(seat.told(), []);
    assert!(seat.screen().contains("!COMMAND runs a command of your own"), "{}", seat.screen());
    seat.keys("!ls\n");
    assert_eq!(seat.told(), [command("ls")]);
    assert!(seat.screen().contains("goes with the next message"), "{}", seat.screen());
}
