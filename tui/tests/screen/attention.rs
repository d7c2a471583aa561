//! Who is called, and when: a person who may look elsewhere.

use ipc::approval::ServerRequest;
use ipc::event::EndReason;
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
