//! Guests as text for a terminal.

use protocol::event::{GuestStarted, GuestTotals, HostUse};

use super::guest_account::GuestAccount;
use super::text::{digest, line, took};

/// Guests of the same kind, name and access that ended in the same way.
struct GuestGroup {
    access: String,
    end: String,
    count: usize,
    totals: GuestTotals,
    hosts: Vec<HostUse>,
}

/// Returns a short row for each group of equal guests of an agent, with the sums of their counts.
pub(super) fn guest_summary(guests: &[GuestAccount]) -> Vec<String> {
    let mut groups: Vec<GuestGroup> = Vec::new();
    for (at, guest) in guests.iter().enumerate() {
        let of = guest.started.of.and_then(|of| guests[..at].iter().rfind(|other| other.started.guest == of));
        let name = match of {
            Some(server) => format!("{} of {}", guest.started, server.started),
            None => guest.started.to_string(),
        };
        let access = line(&format!("{name}: {}", guest.started.access()));
        let (end, hosts) = (end(guest), guest.own_hosts());
        if let Some(group) = groups.iter_mut().find(|group| group.access == access && group.end == end) {
            group.count += 1;
            group.totals = group.totals.plus(guest.totals);
            group.hosts.extend_from_slice(hosts);
        } else {
            let (totals, hosts) = (guest.totals, hosts.to_vec());
            groups.push(GuestGroup { access, end, count: 1, totals, hosts });
        }
    }
    let rows = |GuestGroup { access, end, count, totals, hosts }: GuestGroup| {
        let times = if count == 1 { String::new() } else { format!(" ({count} times)") };
        let row = format!("guest {access}{} · {end}{times}", counted(totals));
        [vec![row], used(&hosts)].concat()
    };
    groups.into_iter().flat_map(rows).collect()
}

/// Returns the rows of a guest: all facts that the log has, and the hosts that belong to the guest itself.
pub(super) fn guest_rows(guest: &GuestAccount) -> Vec<String> {
    let GuestStarted { guest: number, tier, ruleset_digest, landlock_abi, rules, not_enforced, .. } =
        &guest.started;
    let not_enforced = not_enforced.iter().map(|promise| format!(", not enforced: {}", line(promise)));
    let not_enforced: String = not_enforced.collect();
    let started = format!("started at {}", took(guest.started_ms));
    let lasted = guest.duration_ms.map(|ms| format!(" after {}", took(ms))).unwrap_or_default();
    let row = format!(
        "guest {number}{} ({tier}) {} · ruleset {} · Landlock ABI {landlock_abi}, {rules} rules{not_enforced} · {started}{} · {}{lasted}",
        owner(&guest.started),
        line(&format!("{}: {}", guest.started, guest.started.access())),
        digest(ruleset_digest),
        counted(guest.totals),
        end(guest),
    );
    [vec![row], used(guest.own_hosts())].concat()
}

fn used(hosts: &[HostUse]) -> Vec<String> {
    hosts.iter().map(|host| format!("  {}", line(&host.to_string()))).collect()
}

fn end(guest: &GuestAccount) -> String {
    guest.ended.as_ref().map_or_else(
        || "the log does not show when this guest ended".to_owned(),
        |end| line(&end.to_string()),
    )
}

/// Returns the worker, guest or call that a guest serves; empty if it serves its whole agent.
fn owner(started: &GuestStarted) -> String {
    match started {
        GuestStarted { worker: Some(worker), .. } => format!(" of worker {worker}"),
        GuestStarted { of: Some(guest), .. } => format!(" of guest {guest}"),
        GuestStarted { call: Some(call), .. } => format!(" for call {call}"),
        _ => String::new(),
    }
}

fn counted(totals: GuestTotals) -> String {
    let text = totals.to_string();
    if text.is_empty() { text } else { format!(" · {text}") }
}
