//! The guests of a session that is shown: gateways, fetches and MCP servers.

use std::collections::BTreeMap;

use ipc::id::{AgentId, GuestId};
use protocol::event::{EventKind, GuestEnded, GuestRole, GuestStarted, SessionEvent};

#[derive(Debug, Default)]
pub(super) struct ShownGuests(BTreeMap<(AgentId, GuestId), ShownGuest>);

#[derive(Debug)]
struct ShownGuest {
    name: String,
    is_shown: bool,
}

impl ShownGuests {
    /// Returns the title for the start or end of a guest; `None` for other events. For a guest that belongs to a call
    /// or to another guest, there is a title only if `full` is true or the guest ended unexpectedly.
    pub(super) fn title(&mut self, event: &SessionEvent, full: bool) -> Option<String> {
        match &event.kind {
            EventKind::GuestStarted(started) => {
                let guest = ShownGuest { name: started.to_string(), is_shown: full || !is_part(started) };
                let title = format!("{} started · {}", guest.name, started.access());
                let is_shown = guest.is_shown;
                self.0.insert((event.agent.clone(), started.guest), guest);
                is_shown.then_some(title)
            }
            EventKind::GuestEnded(GuestEnded { guest, reason, totals, .. }) => {
                let started = self.0.remove(&(event.agent.clone(), *guest));
                let is_shown = started.as_ref().is_none_or(|started| started.is_shown);
                let name = started.map_or_else(|| format!("guest {guest}"), |started| started.name);
                let totals = match totals.to_string() {
                    none if none.is_empty() => none,
                    totals => format!(" · {totals}"),
                };
                (is_shown || reason.is_failure()).then(|| format!("{name} {reason}{totals}"))
            }
            _ => None,
        }
    }
}

/// True for a guest that belongs to one call or to another guest.
fn is_part(started: &GuestStarted) -> bool {
    match started.kind {
        GuestRole::McpServer => false,
        GuestRole::Gateway => started.call.is_some() || started.of.is_some(),
        _ => true,
    }
}
