//! Workers, and the rights that they were born with.

use ipc::confinement::Tier;
use ipc::id::{CallId, Generation};
use ipc::rights::{Grant, RightsSummary};
use serde::{Deserialize, Deserializer, Serialize};

use super::Recorded;

/// A worker that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerStarted {
    /// The generation.
    pub generation: Generation,
    /// Process id of the worker.
    pub pid: u32,
    /// The tier that this machine can enforce.
    pub tier: Tier,
    /// The Landlock ABI in force.
    pub landlock_abi: u32,
    /// Number of Landlock rules.
    pub rules: u32,
    /// The rights.
    pub rights: Recorded<RightsSummary>,
    /// SHA-256 of the rights, in hexadecimal.
    pub rights_digest: String,
    /// SHA-256 of the rights and of what the kernel holds the worker to them by, in hexadecimal.
    pub ruleset_digest: String,
    /// Purpose of a one-shot worker: one effect, after which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_shot: Option<OneShot>,
    /// Reason that the tier is not `full`, where the best was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_full_tier: Option<String>,
    /// Promises that are not enforced.
    #[serde(default, alias = "missing", skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<String>,
    /// From spawning to `Ready`, in microseconds.
    pub startup_us: u64,
}

/// Effect of a one-shot worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneShot {
    /// The call that it belongs to; absent where it wrote files of a rewind, whose `rewound` event follows.
    #[serde(default, deserialize_with = "some_call", skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Rights beyond the standing ones.
    pub grant: Recorded<Grant>,
    /// SHA-256 of the effect, in hexadecimal.
    pub effect_digest: String,
}

/// Returns the id of a call; earlier versions wrote a rewind as call 0.
fn some_call<'de, D: Deserializer<'de>>(call: D) -> Result<Option<CallId>, D::Error> {
    Ok(Option::<CallId>::deserialize(call)?.filter(|call| call.0 > 0))
}

/// Rights that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RightsChanged {
    /// The first incarnation under the new rights.
    pub generation: Generation,
    /// Process id of the worker.
    pub pid: u32,
    /// The new rights.
    pub rights: Recorded<RightsSummary>,
    /// SHA-256 of the rights, in hexadecimal.
    pub rights_digest: String,
    /// SHA-256 of the rights and of what the kernel holds the worker to them by, in hexadecimal.
    pub ruleset_digest: String,
}
