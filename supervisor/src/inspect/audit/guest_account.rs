//! The summary of one guest: its access, its acts and its end.

use ipc::id::GuestId;
use protocol::event::{GuestEnd, GuestEnded, GuestRole, GuestStarted, GuestTotals, HostUse};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct GuestAccount {
    #[serde(flatten)]
    pub started: GuestStarted,
    /// The time of its start, in milliseconds since the log's first event.
    pub started_ms: u64,
    /// The time from its start to its end, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The reason of its end; `None` if the log does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<GuestEnd>,
    pub totals: GuestTotals,
    /// The hosts that it connected to, or could not.
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

    /// True if an end event with this number belongs to the guest. Numbers restart with each run of the session.
    pub(super) fn is_open(&self, guest: GuestId) -> bool {
        self.started.guest == guest && self.ended.is_none()
    }

    pub(super) fn end(&mut self, ended: &GuestEnded, ended_ms: u64) {
        self.duration_ms = Some(ended_ms.saturating_sub(self.started_ms));
        self.ended = Some(ended.reason.clone());
        self.totals = ended.totals;
        self.hosts.clone_from(&ended.hosts);
    }

    /// The hosts that no worker's account has.
    pub(super) fn own_hosts(&self) -> &[HostUse] {
        let is_counted_elsewhere = self.started.worker.is_some() || self.started.kind == GuestRole::Fetch;
        if is_counted_elsewhere { &[] } else { &self.hosts }
    }
}
