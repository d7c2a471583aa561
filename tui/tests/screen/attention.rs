use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ipc::id::{ApprovalId, CallId};
use protocol::approval::{ReviewDecision, ServerRequest};
use protocol::event::{ApprovalAnswered, DecidedBy, EndReason, EventKind, ToolCallStatus};
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};
use tui::{Action, Msg, Reason};

use crate::core::{denied, exec};
use crate::seat::Seat;

fn calls(seat: &mut Seat) -> Vec<Action> {
    let taken = std::mem::take(&mut seat.actions);
    taken.into_iter().filter(|action| matches!(action, Action::Call(_) | Action::EndCall)).collect()
}

fn ask(seat: &mut Seat, id: u64) {
    seat.ask(id, ServerRequest::ExecCommandApproval(exec("true")));
}

#[test]
fn whoever_is_away_is_called_and_the_call_ends_with_the_focus() {
    let mut seat = Seat::new(80, 24);
    seat.send(Msg::Focus(false));
    ask(&mut seat, 1);
    assert_eq!(calls(&mut seat), [Action::Call(Reason::Approval)]);
    seat.send(Msg::Focus(true));
    assert_eq!(calls(&mut seat), [Action::EndCall]);
    ask(&mut seat, 2);
    assert_eq!(calls(&mut seat), [], "the person is there");
    seat.send(Msg::Focus(false));
    seat.ask(3, ServerRequest::DeniedCommandApproval(denied("true")));
    assert_eq!(calls(&mut seat), [Action::Call(Reason::Denial)]);
}

#[test]
fn a_terminal_that_does_not_tell_its_focus_is_taken_for_left_after_half_a_minute() {
    let mut seat = Seat::new(80, 24);
    seat.keys("go\n");
    ask(&mut seat, 1);
    assert_eq!(calls(&mut seat), []);
    seat.wait(29_000);
    ask(&mut seat, 2);
    assert_eq!(calls(&mut seat), []);
    seat.wait(2_000);
    ask(&mut seat, 3);
    seat.end_turn(EndReason::Done);
    assert_eq!(calls(&mut seat), [Action::Call(Reason::Approval), Action::Call(Reason::TurnOver)]);
    seat.keys("n");
    assert_eq!(calls(&mut seat), [Action::EndCall]);
}

#[test]
fn a_report_of_the_focus_is_no_key() {
    let mut seat = Seat::new(80, 24);
    ask(&mut seat, 1);
    seat.wait(200);
    seat.send(Msg::Focus(true));
    seat.wait(100);
    seat.keys("n");
    assert_eq!(seat.told().len(), 1, "it did not make the keys wait");
}

#[test]
fn a_request_that_nobody_answered_is_made_again_by_a_key() {
    let mut seat = Seat::new(80, 24);
    seat.keys("go\n");
    seat.told();
    seat.call(7, "shell_exec", &serde_json::json!({"command": "make all"}));
    ask(&mut seat, 1);
    seat.log(EventKind::ApprovalAnswered(ApprovalAnswered {
        id: Some(ApprovalId(1)),
        call: CallId(7),
        decision: ReviewDecision::DENIED,
        by: DecidedBy::Deadline,
        cause: Some("nobody answered within 10s".to_owned()),
        in_part: None,
    }));
    seat.core(UiEventKind::ApprovalClosed { id: ApprovalId(1) });
    seat.finish(7, ToolCallStatus::Denied, "denied");
    seat.end_turn(EndReason::Done);
    assert!(seat.screen().contains("Alt+R repeats the unanswered request"), "{}", seat.screen());
    let again = KeyEvent::new(KeyCode::Char('r'), KeyModifiers::ALT);
    seat.send(Msg::Key(again));
    let told = seat.told();
    let [UserActionKind::Agent(AgentAction::Prompt { text, .. })] = &told[..] else { panic!("{told:?}") };
    assert!(text.contains("make all") && text.contains("make the call again"), "{text}");
    seat.send(Msg::Key(again));
    assert_eq!(seat.told(), [], "once");
}
