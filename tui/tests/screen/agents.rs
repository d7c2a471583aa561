//! Tests of a session with several agents: each has its own view, and an answer reaches only the agent that asked.

use ipc::id::{AgentId, ApprovalId};
use protocol::approval::ServerRequest;
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserActionKind};
use tui::{Action, Msg};

use crate::core::exec;
use crate::seat::Seat;

fn of(seat: &mut Seat, agent: &str, kind: UiEventKind) {
    seat.send(Msg::Core(UiEvent { conversation_id: "c".into(), agent: agent.into(), kind }));
}

fn says(seat: &mut Seat, agent: &str, text: &str) {
    of(seat, agent, UiEventKind::TextDelta { text: text.to_owned() });
}

fn asks(seat: &mut Seat, agent: &str, command: &str) {
    let mut params = exec(command);
    params.agent = agent.into();
    let request = Box::new(ServerRequest::ExecCommandApproval(params));
    of(seat, agent, UiEventKind::ApprovalRequested { id: ApprovalId(1), request });
}

fn told(seat: &mut Seat) -> Vec<(AgentId, &'static str)> {
    let actions = std::mem::take(&mut seat.actions).into_iter();
    let told = actions.filter_map(|action| match action {
        Action::User(agent, UserActionKind::Answer { answer, .. }) => {
            Some((agent, answer.decision().unwrap().as_str()))
        }
        Action::User(agent, UserActionKind::Agent(AgentAction::Prompt { .. })) => Some((agent, "prompt")),
        Action::User(agent, UserActionKind::Agent(AgentAction::Interrupt)) => Some((agent, "interrupt")),
        _ => None,
    });
    told.collect()
}

#[test]
fn what_an_agent_says_stands_in_its_own_view() {
    let mut seat = Seat::new(60, 24);
    says(&mut seat, "1", "the first agent");
    says(&mut seat, "1.1", "its sub-agent");
    says(&mut seat, "1", " goes on");
    assert!(seat.screen().contains("the first agent goes on"), "{}", seat.screen());
    assert!(!seat.screen().contains("sub-agent"), "{}", seat.screen());
    assert!(seat.model.select(&"1.1".into()));
    seat.draw();
    assert!(seat.screen().contains("its sub-agent"), "{}", seat.screen());
    assert!(!seat.screen().contains("the first agent"), "{}", seat.screen());
    assert!(!seat.model.select(&"1.2".into()), "it has said nothing yet");
}

#[test]
fn an_answer_goes_to_the_agent_that_asked() {
    let mut seat = Seat::new(60, 24);
    asks(&mut seat, "1", "make one");
    asks(&mut seat, "2", "make two");
    seat.wait(400);
    seat.keys("y");
    seat.wait(400);
    seat.keys("n");
    assert_eq!(told(&mut seat), [("1".into(), "approved"), ("2".into(), "denied")]);
}

#[test]
fn a_request_that_is_closed_is_the_one_of_that_agent() {
    let mut seat = Seat::new(60, 24);
    asks(&mut seat, "1", "make one");
    asks(&mut seat, "2", "make two");
    of(&mut seat, "1", UiEventKind::ApprovalClosed { id: ApprovalId(1) });
    seat.wait(400);
    assert!(seat.screen().contains("make two") && !seat.screen().contains("make one"), "{}", seat.screen());
    seat.keys("y");
    assert_eq!(told(&mut seat), [("2".into(), "approved")]);
}

#[test]
fn a_frame_of_one_request_opens_no_other() {
    let mut seat = Seat::new(60, 24);
    asks(&mut seat, "1", "make one");
    asks(&mut seat, "2", "make two");
    seat.wait(400);
    seat.draws = false;
    seat.keys("yy");
    assert_eq!(told(&mut seat), [("1".into(), "approved")], "the second was on no screen");
}

#[test]
fn what_is_typed_is_for_the_agent_that_is_shown() {
    let mut seat = Seat::new(60, 24);
    says(&mut seat, "2", "ready");
    assert!(seat.model.select(&"2".into()));
    seat.keys("go on\n");
    assert_eq!(told(&mut seat), [("2".into(), "prompt")]);
    // The message waits for the end of this agent's turn, not of the other agent's.
    seat.keys("and on\n");
    assert!(seat.model.select(&"1".into()));
    seat.keys("hello\n");
    assert_eq!(told(&mut seat), [("1".into(), "prompt")]);
}
