use ipc::id::{AgentId, EventId};
use protocol::event::{Account, AssistantMessage, EventKind, ObservedBy, SessionEvent, TokenUsage};

use super::said;
use crate::journal::session::{Fault, Tree};

fn event(id: u64, parent: u64, agent: &str, kind: EventKind) -> SessionEvent {
    SessionEvent {
        id: EventId(id),
        parent: (parent > 0).then_some(EventId(parent)),
        time_ms: id,
        session: "s".into(),
        agent: agent.into(),
        parent_agent: None,
        observed_by: ObservedBy::Supervisor,
        kind,
    }
}

fn reply(output: u64) -> EventKind {
    EventKind::AssistantMessage(AssistantMessage {
        message_id: "m".to_owned(),
        model: "m".to_owned(),
        content: vec![],
        stop_reason: "end_turn".to_owned(),
        usage: TokenUsage { input: 1, cache_read: 10, output, ..TokenUsage::default() },
        estimated: false,
        cost_usd: "0.125".parse().ok(),
    })
}

/// Returns a tree with two turns of the root agent, and a sub-agent that the second turn started.
fn tree() -> Tree {
    let notice = EventKind::Notice { code: "c".into(), message: "m".to_owned() };
    let events = [
        event(1, 0, "1", notice),
        event(2, 1, "1", said("one")),
        event(3, 2, "1", reply(100)),
        event(4, 3, "1", said("two")),
        event(5, 4, "1", reply(200)),
        event(6, 5, "1.1", said("task")),
        event(7, 6, "1.1", reply(1000)),
        event(8, 5, "1", reply(300)),
    ];
    let mut tree = Tree::default();
    for event in events {
        tree.insert(event).unwrap();
    }
    tree
}

fn ids<'a>(events: impl IntoIterator<Item = &'a SessionEvent>) -> Vec<u64> {
    events.into_iter().map(|event| event.id.0).collect()
}

#[test]
fn children_are_found_by_their_parent() {
    let tree = tree();
    assert_eq!(ids(tree.children(None)), [1]);
    assert_eq!(ids(tree.children(Some(EventId(5)))), [6, 8]);
    assert_eq!(ids(tree.children(Some(EventId(8)))), [0u64; 0]);
    assert_eq!(ids(tree.children(Some(EventId(99)))), [0u64; 0]);
}

#[test]
fn path_leads_from_the_root_through_every_parent() {
    assert_eq!(ids(tree().path_to(EventId(7))), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(ids(tree().path_to(EventId(8))), [1, 2, 3, 4, 5, 8]);
    assert_eq!(ids(tree().path_to(EventId(99))), [0u64; 0]);
}

#[test]
fn turns_begin_with_the_users_words() {
    let turns = tree().turns(&AgentId::root());
    let seen: Vec<_> = turns
        .iter()
        .map(|turn| (turn.events.iter().map(|id| id.0).collect::<Vec<_>>(), turn.account.usage.output))
        .collect();
    assert_eq!(seen, [(vec![2, 3], 100), (vec![4, 5, 8], 500)]);
}

#[test]
fn tokens_add_up_per_turn_agent_and_session() {
    let tree = tree();
    assert_eq!(tree.agents(), [&AgentId::root(), &AgentId::from("1.1")]);
    let accounts = tree.accounts();
    assert_eq!(accounts[&AgentId::root()].usage.output, 600);
    assert_eq!(accounts[&AgentId::from("1.1")].usage.total(), 1011);
    assert_eq!(accounts.len(), 2);
    let usage = TokenUsage { input: 4, cache_read: 40, output: 1600, ..TokenUsage::default() };
    assert_eq!(tree.account(), Account::of(usage, "0.5".parse().ok()));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let mut tree = tree();
    let orphan = |id, parent| Fault::Orphan { id: EventId(id), parent: EventId(parent) };
    assert_eq!(tree.insert(event(8, 5, "1", said("x"))), Err(Fault::Duplicate { id: EventId(8) }));
    assert_eq!(tree.insert(event(9, 99, "1", said("x"))), Err(orphan(9, 99)));
    assert_eq!(tree.insert(event(9, 9, "1", said("x"))), Err(orphan(9, 9)));
    let stranger = SessionEvent { session: "t".into(), ..event(9, 8, "1", said("x")) };
    assert_eq!(tree.insert(stranger), Err(Fault::Session { id: EventId(9), session: "t".to_owned() }));
    assert_eq!(tree.len(), 8);
}
