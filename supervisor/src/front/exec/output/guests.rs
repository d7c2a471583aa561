//! Messages for the person about guests (MCP servers and gateways): their starts and ends, and a gateway's hosts.

use std::collections::BTreeMap;

use ipc::id::{AgentId, GuestId};
use protocol::event::{EventKind, GuestEnded, GuestRole, GuestStarted, PinChange, SessionEvent};

/// Guests that have started and not ended.
#[derive(Default)]
pub(super) struct OpenGuests(BTreeMap<(AgentId, GuestId), GuestStarted>);

impl OpenGuests {
    /// Returns the message about an event of a guest; `None` if the person needs no message.
    pub(super) fn remark(&mut self, event: &SessionEvent) -> Option<String> {
        match &event.kind {
            EventKind::GuestStarted(started) => {
                self.0.insert((event.agent.clone(), started.guest), (**started).clone());
                let is_server = started.kind == GuestRole::McpServer;
                is_server.then(|| format!("{started} started ({})", started.access()))
            }
            EventKind::GuestEnded(ended) => {
                let started = self.0.remove(&(event.agent.clone(), ended.guest))?;
                of_end(&started, ended)
            }
            EventKind::ToolPinned(pinned) if pinned.change == PinChange::Withheld => Some(pinned.to_string()),
            _ => None,
        }
    }
}

fn of_end(started: &GuestStarted, ended: &GuestEnded) -> Option<String> {
    let GuestEnded { reason, totals, .. } = ended;
    let is_told = match started.kind {
        GuestRole::McpServer | GuestRole::Other(_) => true,
        GuestRole::Gateway => totals.connections > Some(0) && started.of.is_none(),
        // The result of the call for which the page was fetched says the same.
        GuestRole::Fetch => false,
    };
    let counts = totals.to_string();
    let counts = if counts.is_empty() { counts } else { format!(" · {counts}") };
    (is_told || reason.is_failure() && started.kind != GuestRole::Fetch)
        .then(|| format!("{started} {reason}{counts}"))
}

#[cfg(test)]
mod tests {
    use protocol::event::ObservedBy;
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, data: Value) -> SessionEvent {
        let kind = serde_json::from_value(json!({"type": kind, "data": data})).unwrap();
        let (id, observed_by) = (ipc::id::EventId(1), ObservedBy::Supervisor);
        let agent = AgentId::root();
        SessionEvent {
            id,
            parent: None,
            time_ms: 0,
            session: "s".into(),
            agent,
            parent_agent: None,
            observed_by,
            kind,
        }
    }

    fn started(guest: u32, more: Value) -> SessionEvent {
        let mut data = json!({
            "guest": guest, "pid": 7, "tier": "full", "landlock_abi": 7, "rules": 1, "rights_digest": "d", "ruleset_digest": "d",
            "startup_us": 1, "rights": {"read": ["project", "system"], "net": "off", "hidden": 1, "protected": 0},
        });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event("guest_started", data)
    }

    #[test]
    fn servers_are_told_and_a_gateway_if_it_connected() {
        let mut guests = OpenGuests::default();
        let mut told = Vec::new();
        let ended = |guest: u32, reason: &str, totals: Value| {
            event("guest_ended", json!({"guest": guest, "reason": {"type": reason}, "totals": totals}))
        };
        let connected =
            |connections: u64| json!({"connections": connections, "sent": 1, "received": 2, "denials": 0});
        for event in [
            started(1, json!({"kind": "gateway", "worker": 1})),
            started(2, json!({"kind": "mcp_server", "name": "docs"})),
            started(3, json!({"kind": "fetch", "name": "a.example", "call": 1})),
            ended(3, "late", connected(1)),
            ended(2, "owner_ended", json!({"calls": 1, "denials": 0})),
            ended(1, "owner_ended", connected(0)),
            started(1, json!({"kind": "gateway", "worker": 2})),
            ended(1, "rights_changed", connected(2)),
            event("tool_pinned", json!({"server": "docs", "digest": "ab", "tools": 1, "change": "first"})),
        ] {
            told.extend(guests.remark(&event));
        }
        insta::assert_snapshot!(told.join("\n"), @r"
        mcp docs started (read-only · read the project, system files · network off · secrets hidden)
        mcp docs ended · 1 call
        gateway ended because the access changed · 2 connections · 1 bytes sent, 2 received
        ");
    }
}
