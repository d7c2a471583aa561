//! Events about workers, and the access with which they start.

use std::fmt;

use ipc::confinement::Tier;
use ipc::id::{CallId, Generation};
use ipc::rights::{Grant, RightsSummary};
use serde::{Deserialize, Deserializer, Serialize};

use super::Recorded;

/// A worker is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerStarted {
    /// Number of the worker among those of its agent. Each replacement has a higher number.
    pub generation: Generation,
    /// Process id of the worker.
    pub pid: u32,
    /// The tier that confines the worker.
    pub tier: Tier,
    /// The Landlock ABI in force.
    pub landlock_abi: u32,
    /// Number of Landlock rules that confine the worker.
    pub rules: u32,
    /// The access that the worker is confined to.
    pub rights: Recorded<RightsSummary>,
    /// SHA-256 of the access, in hexadecimal.
    pub rights_digest: String,
    /// SHA-256 of the access and of the kernel rules that enforce it, in hexadecimal.
    pub ruleset_digest: String,
    /// The effect for which a one-shot worker was started; absent for other workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_shot: Option<OneShot>,
    /// Reason that the tier is not `full`, if the best tier was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_full_tier: Option<String>,
    /// Parts of the access that this kernel does not enforce, one sentence each.
    #[serde(default, alias = "missing", skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<String>,
    /// Time from the start of the process to the message `Ready`, in microseconds.
    pub startup_us: u64,
}

/// The effect of a one-shot worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneShot {
    /// The call of the effect; absent for files of a rewind, whose `rewound` event follows.
    #[serde(default, deserialize_with = "some_call", skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Access that the one-shot worker has in addition to the standing access.
    pub grant: Recorded<Grant>,
    /// SHA-256 of the effect, in hexadecimal.
    pub effect_digest: String,
}

/// Reads the id of a call; `None` for 0, which logs of earlier versions have for a rewind.
fn some_call<'de, D: Deserializer<'de>>(call: D) -> Result<Option<CallId>, D::Error> {
    Ok(Option::<CallId>::deserialize(call)?.filter(|call| call.0 > 0))
}

/// Use of a host by one program of an agent, with the counts of the agent's gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostUse {
    /// The host's name.
    pub host: String,
    /// The port that the program tried to connect to.
    pub port: u16,
    /// Name that the connecting process gave itself: any text, empty if it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The address of the first connection, if one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Number of connections that were made.
    pub connections: u64,
    /// Number of connections that were not made, or ended by the gateway.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    /// The reason for the last failure, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Number of bytes to the host, of connections that have ended.
    pub sent: u64,
    /// Number of bytes from the host, of connections that have ended.
    pub received: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Displays one line for people: `curl reached pypi.org:443 · 2 connections · 120 bytes sent, 3000 received`.
impl fmt::Display for HostUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, program, connections, failure, sent, received, .. } = self;
        let program = if program.is_empty() { "a program" } else { program };
        match (connections, failure) {
            (0, Some(failure)) => return write!(f, "{program} could not reach {host}:{port}: {failure}"),
            (0, None) => return write!(f, "{program} could not reach {host}:{port}"),
            (_, Some(failure)) => {
                write!(f, "{program} reached {host}:{port}, and failed once or more: {failure}")?;
            }
            (_, None) => write!(f, "{program} reached {host}:{port}")?,
        }
        if *sent > 0 || *received > 0 {
            let unit = if *connections == 1 { "connection" } else { "connections" };
            write!(f, " · {connections} {unit} · {sent} bytes sent, {received} received")?;
        }
        Ok(())
    }
}

/// A change of an agent's access, and the worker that has the new access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RightsChanged {
    /// Generation of the first worker with the new access.
    pub generation: Generation,
    /// Process id of the worker.
    pub pid: u32,
    /// Access of the worker from now on.
    pub rights: Recorded<RightsSummary>,
    /// SHA-256 of the access, in hexadecimal.
    pub rights_digest: String,
    /// SHA-256 of the access and of the kernel rules that enforce it, in hexadecimal.
    pub ruleset_digest: String,
}
