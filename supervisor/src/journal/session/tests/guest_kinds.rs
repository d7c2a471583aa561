use ipc::confinement::Tier;
use ipc::id::{CallId, Generation, GuestId};
use ipc::rights::{Hosts, NamedRoot, RightsSummary};
use protocol::event::{
    EventKind, GuestEnd, GuestEnded, GuestRole, GuestStarted, GuestTotals, HostUse, ToolPinned, WorkerEnd,
};

use super::kinds::rights;

pub(super) fn guests() -> Vec<EventKind> {
    let started = GuestStarted {
        guest: GuestId(2),
        kind: GuestRole::McpServer,
        name: Some("docs".to_owned()),
        worker: Some(Generation(1)),
        of: Some(GuestId(1)),
        call: Some(CallId(3)),
        pid: 7,
        tier: Tier::Full,
        landlock_abi: 7,
        rules: 40,
        rights: RightsSummary { read: vec![NamedRoot::Project, NamedRoot::System], ..rights() },
        hosts: Hosts::new(["h".parse().unwrap()]),
        variables: vec!["TOKEN".to_owned()],
        rights_digest: "00".repeat(32),
        ruleset_digest: "11".repeat(32),
        not_enforced: vec!["x".to_owned()],
        startup_us: 900,
    };
    let bare = GuestStarted {
        kind: "later".into(),
        name: None,
        worker: None,
        of: None,
        call: None,
        hosts: None,
        variables: Vec::new(),
        not_enforced: Vec::new(),
        ..started.clone()
    };
    let ended = |reason| {
        let hosts = vec![HostUse { host: "a.example".to_owned(), port: 443, sent: 3, ..HostUse::default() }];
        let totals = GuestTotals { calls: Some(1), denials: 2, ..GuestTotals::default() };
        EventKind::GuestEnded(GuestEnded {
            guest: GuestId(2),
            reason,
            totals: totals.with_hosts(&hosts),
            hosts,
        })
    };
    let plain = [
        GuestEnd::Finished,
        GuestEnd::OwnerEnded,
        GuestEnd::RightsChanged,
        GuestEnd::Closed,
        GuestEnd::Late,
        GuestEnd::CutOff,
        GuestEnd::Died { status: WorkerEnd::Signalled { signal: 9 } },
        GuestEnd::Failed { failure: "f\"".to_owned() },
        GuestEnd::Violation { violation: "v".to_owned() },
    ];
    let pinned = |change: &str| {
        EventKind::ToolPinned(ToolPinned {
            server: "docs".to_owned(),
            digest: "22".repeat(32),
            tools: 2,
            change: change.into(),
        })
    };
    [started, bare]
        .map(|started| EventKind::GuestStarted(Box::new(started)))
        .into_iter()
        .chain(plain.map(ended))
        .chain(["first", "changed", "withheld", "later"].map(pinned))
        .collect()
}
