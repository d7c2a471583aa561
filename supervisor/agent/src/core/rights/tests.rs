use gate::Change;
use gate::modes::{Position, Rank};
use ipc::id::GrantId;
use ipc::rights::{Network, Rights, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::event::TurnAllowanceEnd;

use super::*;
use crate::core::outbox::Outbox;
use crate::core::tests::alone::{ask_config, ready, standing};

fn state() -> RightsState {
    RightsState::new(standing(), Position::FIRST)
}

fn net(net: Network) -> Change {
    Change::Rights(RightsChange::Network { net, reach: None })
}

fn make(state: &mut RightsState, change: &Change, out: &mut Outbox) -> Changed {
    let decided = state.decide(change);
    state.make(change, decided, false, out)
}

fn worker(changed: Changed) -> Rights {
    match changed {
        Changed::Worker(rights) => rights,
        other => panic!("no worker: {other:?}"),
    }
}

#[test]
fn a_change_needs_another_worker_and_those_that_follow_wait_for_it() {
    let (mut state, mut out) = (state(), Outbox::default());
    let rights = worker(make(&mut state, &net(Network::On), &mut out));
    state.replace(rights);
    assert!(state.is_awaited() && state.seen().rights().net == Network::On);
    assert!(state.defer(net(Network::Off)).is_none());
    assert!(state.on_worker_ready(ready(2), &mut out).is_some());
    assert!(!state.is_awaited());
    assert_eq!(state.take_deferred(), Some(net(Network::Off)));
    assert!(state.on_worker_ready(ready(3), &mut out).is_none(), "nobody asked for it");
}

#[test]
fn a_worker_that_did_not_start_is_tried_again_by_the_same_change() {
    let (mut state, mut out) = (state(), Outbox::default());
    let rights = worker(make(&mut state, &net(Network::On), &mut out));
    state.replace(rights.clone());
    assert!(state.on_not_replaced("no memory", &mut out).is_some());
    assert!(state.has_failed());
    assert_eq!(worker(make(&mut state, &net(Network::On), &mut out)), rights);
}

#[test]
fn the_rights_of_a_sub_agent_are_changed_by_nobody() {
    let position = Position { rank: Rank::Sub, ..Position::FIRST };
    let (mut state, mut out) = (RightsState::new(standing(), position), Outbox::default());
    assert_eq!(make(&mut state, &net(Network::On), &mut out), Changed::Nothing);
    assert_eq!(out.take().len(), 1, "a notice");
    assert_eq!(state.narrow(state.standing().rights().clone()), Changed::Nothing);
    let less = Rights { write: vec![], ..state.standing().rights().clone() };
    assert_eq!(state.narrow(less.clone()), Changed::Worker(less));
}

#[test]
fn a_turn_that_only_reads_keeps_changes_for_its_end() {
    let (mut state, mut out) = (state(), Outbox::default());
    let before = state.standing().rights().clone();
    let (_, changed) = state.begin_reading(false, &mut out);
    let narrow = worker(changed);
    assert_eq!(narrow.write, ["/tmp/bw-1".into()]);
    state.replace(narrow);
    assert_eq!(state.seen().mode(), ApprovalMode::Deny);
    assert_eq!(state.due(net(Network::On), &mut out), None, "it gives something");
    let after = worker(state.end_turn(TurnAllowanceEnd::TurnEnded, &mut out));
    assert_eq!((after.write, after.net), (before.normalised().write, Network::On));
    assert_eq!(state.end_turn(TurnAllowanceEnd::TurnEnded, &mut out), Changed::Nothing);
}

#[test]
fn a_mode_of_the_same_rights_is_told_and_starts_no_worker() {
    let mut out = Outbox::default();
    let mut state = RightsState::new(ask_config().standing, Position::FIRST);
    let changed = make(&mut state, &Change::Mode(ApprovalMode::Deny), &mut out);
    assert!(matches!(changed, Changed::ModeAlone(_)), "{changed:?}");
    assert_eq!((state.standing().mode(), state.seen().mode()), (ApprovalMode::Deny, ApprovalMode::Deny));
    let rights = worker(make(&mut state, &Change::Mode(ApprovalMode::Auto), &mut out));
    assert!(rights.write.contains(&"/p".into()), "{rights:?}");
}

#[test]
fn an_approval_that_is_not_there_cannot_be_revoked() {
    let (mut state, mut out) = (state(), Outbox::default());
    state.revoke(GrantId(7), &mut out);
    assert_eq!(out.take().len(), 1);
    assert!(state.withdraw(&net(Network::Off), &mut out).is_some_and(|taken| !taken.revoked));
    assert!(
        state.withdraw(&Change::Rights(RightsChange::RemoveWrite { path: "/x".into() }), &mut out).is_none()
    );
}
