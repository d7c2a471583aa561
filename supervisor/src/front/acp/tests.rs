use ipc::id::{AgentId, CallId, EventId, Generation};
use ipc::rights::Network;
use protocol::approval::ApprovalMode;
use protocol::event::{EventKind, HostUse, NoticeCode, ObservedBy, SessionEvent};
use protocol::frontend::{UiEvent, UiEventKind};
use serde_json::Value;

use super::commands::OfferedCommands;
use super::options::Ceiling;
use super::reaction::Reaction;
use super::session::AcpSession;
use super::waiting::{Change, Opening, OpeningKind, WantedChange};

fn session() -> AcpSession {
    let opening = Opening { id: "open".into(), kind: OpeningKind::New, proposals: None };
    let models = vec!["m".to_owned()];
    AcpSession::new(
        opening,
        Ceiling { mode: ApprovalMode::Ask, net: Network::On, models },
        OfferedCommands::default(),
    )
}

fn logged(kind: EventKind) -> UiEvent {
    let event = SessionEvent {
        id: EventId(1),
        parent: None,
        time_ms: 1,
        session: "s".into(),
        agent: AgentId::root(),
        parent_agent: None,
        observed_by: ObservedBy::Supervisor,
        kind,
    };
    let kind = UiEventKind::Logged(Box::new(event));
    UiEvent { conversation_id: "s".into(), agent: AgentId::root(), kind }
}

fn updates(reactions: &[Reaction]) -> Vec<Value> {
    let updates = reactions.iter().filter_map(|reaction| match reaction {
        Reaction::Update(update) => Some(serde_json::to_value(update).unwrap()),
        _ => None,
    });
    updates.collect()
}

fn hosts(host: &str, connections: u64) -> UiEvent {
    let used = HostUse {
        host: host.to_owned(),
        port: 443,
        program: "curl".to_owned(),
        address: None,
        connections,
        failures: 0,
        failure: None,
        sent: 0,
        received: 0,
    };
    logged(EventKind::HostsUsed { generation: Generation(1), uses: vec![used] })
}

#[test]
fn the_hosts_of_a_gateway_are_one_call_that_grows() {
    let mut session = session();
    let first = updates(&session.on(hosts("a.example", 1)));
    assert_eq!(
        (&first[0]["sessionUpdate"], &first[0]["toolCallId"]),
        (&"tool_call".into(), &"hosts:1".into())
    );
    session.on(hosts("b.example", 1));
    let last = updates(&session.on(hosts("a.example", 2)));
    assert_eq!(last[0]["sessionUpdate"], "tool_call_update");
    let text = last[0]["content"].to_string();
    assert!(text.matches("a.example").count() == 1 && text.matches("b.example").count() == 1, "{text}");
}

#[test]
fn a_change_that_is_refused_is_an_error_with_the_reason() {
    let mut session = session();
    session.change =
        Some(Change { id: "c".into(), wanted: WantedChange::Mode(ApprovalMode::Deny), is_option: false });
    let other = EventKind::Notice { code: NoticeCode::ModelRefused, message: "no model".to_owned() };
    assert!(!session.on(logged(other)).iter().any(|reaction| matches!(reaction, Reaction::Refuse(..))));
    let refused = EventKind::Notice { code: NoticeCode::RightsRefused, message: "it rests not".to_owned() };
    let reactions = session.on(logged(refused));
    let [Reaction::Refuse(id, error)] = reactions.as_slice() else { panic!() };
    assert_eq!((id, error.message.as_str()), (&"c".into(), "it rests not"));
    assert!(session.change.is_none());
}

#[test]
fn a_mode_that_changed_answers_the_request_for_it_alone() {
    let mut session = session();
    session.change =
        Some(Change { id: "c".into(), wanted: WantedChange::Mode(ApprovalMode::Deny), is_option: false });
    let changed = |mode| logged(EventKind::ModeChanged { mode });
    let answers =
        |reactions: &[Reaction]| reactions.iter().filter(|one| matches!(one, Reaction::Answer(..))).count();
    assert_eq!(answers(&session.on(changed(ApprovalMode::Auto))), 0);
    let reactions = session.on(changed(ApprovalMode::Deny));
    assert_eq!(answers(&reactions), 1);
    assert_eq!(updates(&reactions)[0]["currentModeId"], "deny");
}

#[test]
fn the_end_of_an_output_is_shown_until_its_call_is_over() {
    let mut session = session();
    let (agent, call) = (AgentId::root(), CallId(1));
    assert!(session.output(&agent, call, "x").is_none());
    let started = serde_json::json!({"type": "tool_call_started", "data": {
        "call": 1, "tool_use": "t", "name": "shell_exec", "kind": "execute", "locations": [], "input": {"command": "x"}}});
    session.on(logged(serde_json::from_str(&started.to_string()).unwrap()));
    let first = serde_json::to_value(session.output(&agent, call, "begin\n").unwrap()).unwrap().to_string();
    let long =
        serde_json::to_value(session.output(&agent, call, &"y".repeat(9000)).unwrap()).unwrap().to_string();
    assert!(first.contains("begin") && !long.contains("begin") && long.len() < 5000, "{}", long.len());
}
