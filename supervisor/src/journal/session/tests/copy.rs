use protocol::event::SessionEvent;
use tempfile::TempDir;

use super::{Scratch, said};
use crate::journal::session::{Chain, SessionLog, rebuild};

fn log() -> Scratch {
    let mut scratch = Scratch::new();
    for text in ["a", "b", "c"] {
        scratch.append("1", said(text));
    }
    scratch
}

fn chained(log: &[u8], change: impl Fn(&str) -> String) -> (Vec<u8>, String) {
    let (mut chain, mut copy) = (Chain::default(), Vec::new());
    for line in std::str::from_utf8(log).unwrap().lines() {
        copy.extend(chain.next(change(line).as_bytes()).unwrap());
        copy.push(b'\n');
    }
    (copy, chain.last())
}

#[test]
fn copied_lines_have_a_chain_of_their_own() {
    let log = log().bytes();
    assert_eq!(chained(&log, str::to_owned).0, log, "an unchanged log has the same chain");
    let (copy, last) = chained(&log, |line| line.replacen("\"text\":\"", "\"text\":\"a changed ", 1));
    assert_ne!(copy, log);
    assert_eq!(rebuild(&copy).faults, []);
    assert_eq!(last.len(), 64);
    assert_eq!(Chain::default().next(b"no line of ours"), None);
}

#[test]
fn an_event_is_copied_into_another_session_with_its_number_and_time() {
    let first = rebuild(&log().bytes());
    let events: Vec<SessionEvent> = first.tree.events().cloned().collect();
    let state = TempDir::new().unwrap();
    let mut copy = SessionLog::create(state.path(), &"s-2".into()).unwrap();
    for event in &events {
        copy.copy(event.clone()).unwrap();
    }
    let loaded = rebuild(&std::fs::read(copy.path()).unwrap());
    assert_eq!(loaded.faults, []);
    let same = |event: &SessionEvent| SessionEvent { session: "s-2".into(), ..event.clone() };
    assert_eq!(
        loaded.tree.events().cloned().collect::<Vec<_>>(),
        events.iter().map(same).collect::<Vec<_>>()
    );
}
