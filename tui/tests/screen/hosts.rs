use ipc::id::{AgentId, ApprovalId, CallId};
use ipc::rights::{Grant, Hosts, Network};
use protocol::approval::{ApprovalAnswer, HostApprovalParams, ReviewDecision, ServerRequest, SessionScope};
use protocol::event::{ApprovalAnswered, DecidedBy, EventKind};
use protocol::frontend::UserActionKind;

use crate::core::read_only;
use crate::seat::Seat;

fn request(program: &str) -> ServerRequest {
    let host: ipc::rights::HostRule = "docs.example".parse().unwrap();
    ServerRequest::HostApproval(HostApprovalParams {
        conversation_id: "c".into(),
        agent: AgentId::root(),
        call_id: CallId(7),
        command: "npm ci".to_owned(),
        program: program.to_owned(),
        host: host.clone(),
        digest: "d5".to_owned(),
        grant: Grant { net: Network::Hosts(Hosts::new([host]).unwrap()), ..Grant::default() },
        rights: read_only().into(),
        timeout_ms: 20_000,
        reason: None,
    })
}

fn asked() -> Seat {
    let mut seat = Seat::new(80, 20);
    seat.ask(1, request("node"));
    seat.wait(400);
    seat
}

#[test]
fn a_card_names_program_host_port_and_the_time_left() {
    let screen = asked().screen();
    for line in [
        " Connect to docs.example? ",
        " 0:19 left",
        "\u{2502} npm ci",
        "  tries to  connect to docs.example:443 by node, which is not on the list of",
        "  allows    reach docs.example:443, until this command ends",
        "  waits     the command is running, and this connection waits for your answer",
        "o allow for this command  s allow docs.example, this session  n no",
    ] {
        assert!(screen.contains(line), "{line}\n{screen}");
    }
    let mut hostile = Seat::new(80, 20);
    hostile.ask(1, request("\u{1b}[2Knode"));
    hostile.wait(400);
    assert!(hostile.screen().contains("docs.example:443 by \\u{1b}[2Knode"), "{}", hostile.screen());
}

#[test]
fn each_key_is_its_answer() {
    let session = ReviewDecision::ApprovedForSession { scope: SessionScope::Network };
    for (key, expected) in [
        ("o", ReviewDecision::Approved),
        ("s", session.clone()),
        ("h", session),
        ("n", ReviewDecision::DENIED),
    ] {
        let mut seat = asked();
        seat.keys(key);
        let told = seat.told();
        let [UserActionKind::Answer { answer: ApprovalAnswer::Host(answer), .. }] = &told[..] else {
            panic!("{key}: {told:?}")
        };
        assert_eq!((&answer.decision, answer.digest.as_deref()), (&expected, Some("d5")), "{key}");
    }
}

#[test]
fn the_line_about_an_answer_names_the_host() {
    for (decision, by, cause, line) in [
        (ReviewDecision::Approved, DecidedBy::User, None, "docs.example: allowed for this command"),
        (ReviewDecision::DENIED, DecidedBy::User, None, "docs.example: not allowed"),
        (
            ReviewDecision::DENIED,
            DecidedBy::Deadline,
            Some("nobody answered within 20s"),
            "docs.example: not allowed: nobody answered within 20s",
        ),
    ] {
        let mut seat = asked();
        let cause = cause.map(str::to_owned);
        let id = Some(ApprovalId(1));
        seat.log(EventKind::ApprovalAnswered(ApprovalAnswered {
            id,
            call: CallId(7),
            decision,
            by,
            cause,
            in_part: None,
        }));
        assert!(seat.screen().contains(line), "{}", seat.screen());
        assert!(!seat.screen().contains("call 7"), "{}", seat.screen());
    }
}
