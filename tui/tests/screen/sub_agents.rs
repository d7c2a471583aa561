//! Tests of the request for a sub-agent with more access than the requesting agent.

use insta::assert_snapshot;
use ipc::id::{AgentId, ApprovalId, CallId};
use ipc::rights::{Grant, Network, Rights};
use protocol::approval::{
    AgentAccess, AgentRightsApprovalParams, AgentRightsApprovalResponse, ApprovalAnswer, NamedServer,
    ReviewDecision, ServerAccess, ServerRequest,
};
use protocol::frontend::UserActionKind;

use crate::seat::Seat;

pub(crate) fn docs() -> NamedServer {
    let access = ServerAccess {
        read: vec!["/home/me/project".into()],
        variables: vec!["NOTES_TOKEN".to_owned()],
        ..ServerAccess::default()
    };
    NamedServer { name: "docs".to_owned(), tools: Vec::new(), access }
}

pub(crate) fn spawn(task: &str) -> AgentRightsApprovalParams {
    let write = vec!["/home/me/project/src".into()];
    AgentRightsApprovalParams {
        conversation_id: "c".into(),
        agent: AgentId::root(),
        call_id: CallId(11),
        task: task.to_owned(),
        role: None,
        access: AgentAccess::Write,
        write: write.clone(),
        network: Network::On,
        rights: Rights {
            read: vec!["/".into()],
            write: vec!["/home/me/project/src".into(), "/tmp/bw-2".into()],
            net: Network::On,
            ..Rights::default()
        },
        grant: Grant { write, net: Network::On, ..Grant::default() },
        servers: vec![docs()],
        digest: "d5".to_owned(),
        timeout_ms: 300_000,
        reason: Some("the parser needs a fix".to_owned()),
        turn: None,
    }
}

fn asked(task: &str) -> Seat {
    let mut seat = Seat::new(60, 24);
    seat.ask(1, ServerRequest::AgentRightsApproval(spawn(task)));
    seat.wait(400);
    seat
}

#[test]
fn the_card_shows_the_task_and_all_rights_of_the_sub_agent() {
    assert_snapshot!(asked("Fix the parser\u{202e}.\nThen run its tests.").screen(), @r"
      Secrets hidden.
    · try: fix the failing test · @README.md explain this ·
      /plan add a flag
    · / commands · ? keys · Alt+Enter new line ·
      Shift+Tab mode · Esc stop · :q quit
     Start this sub-agent? ─────────────────────────────────────
    │ Fix the parser\u{202e}.
    │ Then run its tests.
    the agent's reason:
    “ the parser needs a fix
      may       write src, which the main agent cannot
                write /tmp/bw-2
      network   on, which the main agent cannot
      has       the MCP server docs, with this access:
                  reads /home/me/project
                  writes only the server's own files
                  network off
                  given NOTES_TOKEN
                calls that need more access are denied
      lasts     as long as the sub-agent runs
    y yes  n no  ? why  e no, because…  d full screen  Esc stop
    ── waiting for your answer ─────────────────────────────────
    ›
     APPROVAL  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only
    ");
}

#[test]
fn it_is_approved_once_and_never_for_the_session() {
    let mut seat = asked("Fix the parser.");
    seat.keys("s");
    assert!(seat.screen().contains("Start this sub-agent?"), "s opens nothing");
    seat.keys("y");
    let answer = ApprovalAnswer::Agent(AgentRightsApprovalResponse {
        decision: ReviewDecision::Approved,
        digest: Some("d5".to_owned()),
    });
    assert_eq!(seat.told(), [UserActionKind::Answer { id: ApprovalId(1), answer }]);
}

#[test]
fn a_long_task_is_approved_only_when_its_end_was_on_the_screen() {
    let mut seat = asked(&"one more line\n".repeat(60));
    seat.keys("y");
    assert_eq!(seat.told(), [], "its end was not on the screen");
    seat.keys("Gy");
    assert!(matches!(&seat.told()[..], [UserActionKind::Answer { .. }]));
}
