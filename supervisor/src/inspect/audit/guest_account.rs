//! The summary of one guest: its access, its acts and its end.

use ipc::id::GuestId;
use protocol::event::{GuestEnd, GuestEnded, GuestRole, GuestStarted, GuestTotals, HostUse};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct GuestAccount {
    #[serde(flatten)]
    pub started: GuestStarted,
    /// Time of the guest's start, in milliseconds since the log's first event.
    pub started_ms: u64,
    /// Time from the guest's start to its end, in milliseconds; `None` if the log has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The reason for the guest's end; `None` if the log has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<GuestEnd>,
    pub totals: GuestTotals,
    /// Hosts that the guest connected to, or failed to connect to.
    #[serde(rename = "hosts_used", skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostUse>,
}

impl GuestAccount {
    pub(super) fn new(started: &GuestStarted, started_ms: u64) -> Self {
        Self {
            started: started.clone(),
            started_ms,
            duration_ms: None,
            ended: None,
            totals: GuestTotals::default(),
            hosts: Vec::new(),
        }
    }

    /// True if this guest has the number `guest` and has not ended. Each run of a session numbers its guests anew.
    pub(super) fn is_open(&self, guest: GuestId) -> bool {
        self.started.guest == guest && self.ended.is_none()
    }

    pub(super) fn end(&mut self, ended: &GuestEnded, ended_ms: u64) {
        self.duration_ms = Some(ended_ms.saturating_sub(self.started_ms));
        self.ended = Some(ended.reason.clone());
        self.totals = ended.totals;
        self.hosts.clone_from(&ended.hosts);
    }

    /// Returns the hosts that belong to the guest itself; nothing if they are counted for a worker or a call.
    pub(super) fn own_hosts(&self) -> &[HostUse] {
        let is_counted_elsewhere = self.started.worker.is_some() || self.started.kind == GuestRole::Fetch;
        if is_counted_elsewhere { &[] } else { &self.hosts }
    }
}
