use ipc::id::{AgentId, EventId};
use protocol::event::{EventKind, PlaceChange, Recorded};

use crate::journal::session::{Fault, Loaded, rebuild};

/// Returns a line of a log without its digests.
fn line(version: u32, id: u64, agent: &str, kind: &str, data: &str) -> String {
    let parent = if id > 1 { format!(r#""parent":{},"#, id - 1) } else { String::new() };
    format!(
        r#"{{"v":{version},"id":{id},{parent}"time_ms":1,"session":"s","agent":"{agent}","observed_by":"supervisor","type":"{kind}","data":{data}}}"#
    ) + "\n"
}

fn loaded(lines: &[String]) -> (Loaded, Vec<Fault>) {
    let loaded = rebuild(lines.concat().as_bytes());
    let faults = loaded.faults.iter().filter(|fault| !matches!(fault, Fault::Chain { .. })).cloned();
    let faults = faults.collect();
    (loaded, faults)
}

#[test]
fn what_older_schemas_say_in_sentences_stays_a_sentence() {
    let digests = r#""rights_digest":"0","ruleset_digest":"1""#;
    let shot = r#""one_shot":{"call":1,"grant":"write /p/a","effect_digest":"2"}"#;
    let worker = format!(
        r#"{{"generation":1,"pid":2,"tier":"floor (unmediated)","landlock_abi":0,"rules":3,"rights":"rw . · net off",{digests},{shot},"missing":["no full tier: x"],"startup_us":4}}"#
    );
    let started = r#"{"version":"0","project":"/p","activity":"execute","mode":"auto","model":"m","provider":"p","rights":"rw ."}"#;
    let places = r#"{"places":[{"path":".envrc","what":"moved away","restored":true},{"path":".git/config","what":"core.pager","restored":true}]}"#;
    for version in 3..=5 {
        let lines = [
            line(version, 1, "1", "session_started", started),
            line(version, 2, "1", "worker_started", &worker),
            line(version, 3, "1", "grant_added", r#"{"id":1,"covers":"x","grant":"write /p"}"#),
            line(version, 4, "1", "restored", places),
            line(version, 5, "1", "worker_ended", r#"{"generation":1,"reason":"exited with code 3"}"#),
            line(version, 6, "1", "notice", r#"{"code":"a_code_of_then","message":"m"}"#),
        ];
        let (loaded, faults) = loaded(&lines);
        assert_eq!((faults, loaded.tree.len()), (vec![], 6), "schema {version}");
        let said: Vec<_> = loaded.tree.events().filter_map(|event| told(&event.kind)).collect();
        let expected = ["rw .", "rw . · net off", "write /p", "core.pager", "exited with code 3"];
        assert_eq!(said, expected, "schema {version}");
    }
}

fn told(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::SessionStarted(started) => sentence(&started.rights),
        EventKind::WorkerStarted(started) => sentence(&started.rights),
        EventKind::GrantAdded(grant) => grant.grant.as_ref().and_then(sentence),
        EventKind::WorkerEnded { reason, .. } => sentence(reason),
        EventKind::Restored { places, .. } => {
            assert_eq!(places[0].what, PlaceChange::MovedAway);
            match &places[1].what {
                PlaceChange::Unstructured(phrase) => Some(phrase.clone()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn sentence<T>(recorded: &Recorded<T>) -> Option<String> {
    match recorded {
        Recorded::Unstructured(sentence) => Some(sentence.clone()),
        Recorded::Value(_) => None,
    }
}

#[test]
fn an_event_of_a_later_version_is_told_and_the_rest_is_read() {
    let said = |id| line(6, id, "1", "user_message", r#"{"text":"hi","later":1}"#);
    let unknown = line(6, 2, "1", "session_resumed", r#"{"anything":[]}"#);
    let (loaded, faults) = loaded(&[said(1), unknown, said(3), said(4)]);
    assert_eq!(faults, [Fault::UnknownType { line: 2, r#type: "session_resumed".to_owned() }]);
    assert_eq!(
        faults[0].to_string(),
        "line 2 is an event of the type `session_resumed`, which this version does not know; the line is left out"
    );
    let path: Vec<_> = loaded.tree.path_to(EventId(4)).iter().map(|event| event.id.0).collect();
    assert_eq!(path, [1, 3, 4]);
    let below: Vec<_> = loaded.tree.children(Some(EventId(1))).map(|event| event.id.0).collect();
    assert_eq!(below, [3]);
}

#[test]
fn a_broken_event_of_a_known_type_is_no_event_of_a_later_version() {
    let (_, faults) = loaded(&[line(6, 1, "1", "user_message", r#"{"text":7}"#)]);
    assert!(matches!(&faults[..], [Fault::Unreadable { line: 1, .. }]), "{faults:?}");
    let (_, faults) = loaded(&[line(8, 1, "1", "later", "{}")]);
    assert!(matches!(&faults[..], [Fault::Unreadable { line: 1, .. }]), "{faults:?}");
}

#[test]
fn any_agent_may_stand_in_a_log() {
    let agents = ["1", "7.3.1", "nobody", ""];
    let lines: Vec<_> =
        (1..).zip(agents).map(|(id, agent)| line(6, id, agent, "user_message", r#"{"text":"x"}"#)).collect();
    let (loaded, faults) = loaded(&lines);
    assert_eq!((faults, loaded.tree.agents().len()), (vec![], agents.len()));
    for agent in agents.map(AgentId::from) {
        assert_eq!(loaded.tree.turns(&agent).len(), 1, "{agent}");
    }
}
