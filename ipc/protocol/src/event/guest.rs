//! Guests: confined helper processes that execute no tool calls.

use std::fmt;

use ipc::confinement::Tier;
use ipc::id::{CallId, Generation, GuestId};
use ipc::rights::{Hosts, RightsSummary};
use serde::{Deserialize, Serialize};

use super::word::words;
use super::{HostUse, WorkerEnd};

words! {
    /// The task of a guest, a helper process in a separate sandbox.
    pub enum GuestRole {
        /// The guest connects to hosts by name, for a worker or another guest.
        Gateway = "gateway",
        /// The guest fetches one page for its agent.
        Fetch = "fetch",
        /// The guest runs an MCP server as its child.
        McpServer = "mcp_server",
    }
}

/// A guest is ready, and the supervisor has verified its confinement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestStarted {
    /// The number of the guest among those of its agent in this run.
    pub guest: GuestId,
    /// The task of the guest.
    pub kind: GuestRole,
    /// The server's name in the settings, or the host that a page is fetched from; absent for a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The worker that the gateway serves. The gateway ends with this worker. Absent for other guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Generation>,
    /// The other guest that the gateway serves. The gateway ends with that guest. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<GuestId>,
    /// The call for which the guest was started, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Process id of the guest.
    pub pid: u32,
    /// The tier that confines the guest.
    pub tier: Tier,
    /// The Landlock ABI in force.
    pub landlock_abi: u32,
    /// Number of Landlock rules that confine the guest.
    pub rules: u32,
    /// Access that the sandbox allows the guest.
    pub rights: RightsSummary,
    /// Hosts to which the guest's own program limits its connections, if the access includes the whole network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Names of the environment variables that the guest gets in addition to those of every program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// SHA-256 of the access, in hexadecimal.
    pub rights_digest: String,
    /// Hexadecimal SHA-256 of the access and of the kernel rules that enforce it.
    pub ruleset_digest: String,
    /// Parts of the access that this kernel does not enforce, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<String>,
    /// Time from the guest's start to its first report, in microseconds.
    pub startup_us: u64,
}

/// A guest has ended, with all its descendants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestEnded {
    /// The number of the guest in its event `guest_started`.
    pub guest: GuestId,
    /// The reason why the guest ended.
    pub reason: GuestEnd,
    /// Counts of the guest's work, as far as they are known.
    #[serde(default)]
    pub totals: GuestTotals,
    /// The hosts that the guest connected to, or failed to connect to, with all counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostUse>,
}

/// Counts of a guest's work. An absent count is unknown, or does not apply to this kind of guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestTotals {
    /// Number of calls that an MCP server was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Number of connections that the guest made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Number of bytes that the guest sent to hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Number of bytes that the guest received from hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Number of system calls that the guest's sandbox denied.
    #[serde(default)]
    pub denials: u64,
}

impl GuestTotals {
    /// Returns the sums of these counts and others. A count that is unknown in both stays unknown.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            calls: sum(self.calls, other.calls),
            connections: sum(self.connections, other.connections),
            sent: sum(self.sent, other.sent),
            received: sum(self.received, other.received),
            denials: self.denials.saturating_add(other.denials),
        }
    }

    /// Returns these counts, with the numbers of connections and bytes computed from the uses of hosts.
    #[must_use]
    pub fn with_hosts(self, hosts: &[HostUse]) -> Self {
        let sum = |count: fn(&HostUse) -> u64| Some(hosts.iter().map(count).fold(0, u64::saturating_add));
        Self {
            connections: sum(|host| host.connections),
            sent: sum(|host| host.sent),
            received: sum(|host| host.received),
            ..self
        }
    }
}

/// The reason for the end of a guest, which is a helper process in a separate sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum GuestEnd {
    /// The guest has done its task: it fetched its page, or described its server.
    Finished,
    /// The worker, agent or guest that this guest served has ended.
    OwnerEnded,
    /// The access of the guest's agent changed, so that the agent's worker was replaced.
    RightsChanged,
    /// The guest was not needed any more: its call ended, or its start was cancelled.
    Closed,
    /// The guest was killed, because it did not finish in time.
    Late,
    /// The guest's process ended before its task did.
    Died {
        /// The end of the guest's process.
        status: WorkerEnd,
    },
    /// The guest reported that it could not continue its task.
    Failed {
        /// The reason, partly in words of a server.
        failure: String,
    },
    /// The guest was killed, because it broke the protocol.
    Violation {
        /// Description of the message that was not allowed.
        violation: String,
    },
    /// The guest was killed with the process of the session, as a later run found.
    CutOff,
}

impl GuestEnd {
    /// True if the guest ended because of a fault: it was late, died, failed or broke the protocol.
    pub const fn is_failure(&self) -> bool {
        match self {
            Self::Late | Self::Died { .. } | Self::Failed { .. } | Self::Violation { .. } => true,
            Self::Finished | Self::OwnerEnded | Self::RightsChanged | Self::Closed | Self::CutOff => false,
        }
    }
}

/// Displays a clause with the guest as its subject.
impl fmt::Display for GuestEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::OwnerEnded => f.write_str("ended"),
            Self::RightsChanged => f.write_str("ended because the access changed"),
            Self::Closed => f.write_str("was closed"),
            Self::Late => f.write_str("killed: not finished in time"),
            Self::Died { status } => write!(f, "died: {status}"),
            Self::Failed { failure } => write!(f, "failed: {failure}"),
            Self::Violation { violation } => write!(f, "killed: invalid message ({violation})"),
            Self::CutOff => f.write_str("was ended with the session"),
        }
    }
}

/// Displays `2 calls · 3 connections · 120 bytes sent, 3000 received · 1 denied`; nothing without counts.
impl fmt::Display for GuestTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, connections, sent, received, denials } = *self;
        let unit = |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
        let bytes = sent.zip(received).filter(|bytes| *bytes != (0, 0));
        let parts = [
            calls.map(|calls| unit(calls, "call")),
            connections.map(|connections| unit(connections, "connection")),
            bytes.map(|(sent, received)| format!("{sent} bytes sent, {received} received")),
            (denials > 0).then(|| format!("{denials} denied")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(" · "))
    }
}

/// Displays `mcp docs`, `gateway` or `fetch docs.example`.
impl fmt::Display for GuestStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            GuestRole::McpServer => f.write_str("mcp")?,
            other => other.fmt(f)?,
        }
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

impl GuestStarted {
    /// Returns the access in one line: paths and network, hosts that the guest's program accepts, and variables.
    pub fn access(&self) -> String {
        let hosts = self.hosts.as_ref().map(|hosts| format!(" · the program connects only to {hosts}"));
        let variables =
            (!self.variables.is_empty()).then(|| format!(" · given {}", self.variables.join(", ")));
        format!("{}{}{}", self.rights, hosts.unwrap_or_default(), variables.unwrap_or_default())
    }
}

words! {
    /// The difference between an MCP server's tools and those of the session's earlier runs.
    pub enum PinChange {
        /// The session uses tools of this server for the first time.
        First = "first",
        /// The tools differ from those of an earlier run; the user has approved them since.
        Changed = "changed",
        /// The started server described tools other than the approved ones, which are not called.
        Withheld = "withheld",
    }
}

/// The tools of an MCP server, as the user approved them before the session, or as the server describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolPinned {
    /// The server's name in the settings.
    pub server: String,
    /// SHA-256 of the server's table and of the definitions of all its tools, in hexadecimal.
    pub digest: String,
    /// Number of the server's tools.
    pub tools: u64,
    /// The difference from the tools of earlier runs.
    pub change: PinChange,
}

/// Displays `mcp docs: 2 tools, as approved (0123456789ab…)`.
impl fmt::Display for ToolPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, digest, tools, change } = self;
        let unit = if *tools == 1 { "tool" } else { "tools" };
        let short: String = digest.chars().take(12).collect();
        let words = match change {
            PinChange::First => "as approved",
            PinChange::Changed => "approved since the last run",
            PinChange::Withheld => "those that differ from the approved tools are not called",
            PinChange::Other(other) => other,
        };
        write!(f, "mcp {server}: {tools} {unit}, {words} ({short}…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_name_what_is_known() {
        let used = |connections, sent| HostUse { connections, sent, received: 9, ..HostUse::default() };
        let totals = GuestTotals { calls: Some(1), denials: 2, ..GuestTotals::default() };
        assert_eq!(totals.to_string(), "1 call · 2 denied");
        let with = totals.with_hosts(&[used(1, 20), used(2, 30)]);
        assert_eq!(with.to_string(), "1 call · 3 connections · 50 bytes sent, 18 received · 2 denied");
        assert_eq!(GuestTotals::default().with_hosts(&[]).to_string(), "0 connections");
        assert_eq!(GuestTotals::default().to_string(), "");
        let sum = with.plus(totals).plus(GuestTotals::default());
        assert_eq!(sum.to_string(), "2 calls · 3 connections · 50 bytes sent, 18 received · 4 denied");
    }

    #[test]
    fn an_end_is_one_object() {
        let died = GuestEnd::Died { status: WorkerEnd::Signalled { signal: 9 } };
        let json = r#"{"type":"died","status":{"type":"signalled","signal":9}}"#;
        assert_eq!(serde_json::to_string(&died).unwrap(), json);
        assert_eq!(serde_json::from_str::<GuestEnd>(json).unwrap(), died);
        assert_eq!(died.to_string(), "died: ended by signal 9");
    }
}
