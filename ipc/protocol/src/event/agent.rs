//! Events of sub-agents: start, end, and waiting before they write the same files.

use std::fmt;
use std::time::Duration;

use ipc::denial::Denial;
use ipc::id::{AgentId, CallId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Reach, Word};
use serde::{Deserialize, Serialize};

use super::{Account, Activity, StepAccount, TokenUsage};
use crate::cost::Usd;

/// A sub-agent is about to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SubAgentSpawned {
    /// Id of the sub-agent.
    pub agent: AgentId,
    /// The parent's call that requested the sub-agent; absent if the user requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The kind of work; absent if it is that of the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// SHA-256 of the plan that the sub-agent executes, in hexadecimal; absent without a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Number of steps at the beginning of the plan that earlier executions have finished.
    #[serde(default, skip_serializing_if = "are_none")]
    pub finished: u32,
    /// Task in the parent's words.
    pub task: String,
    /// Role, if the agent has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Model of the agent.
    pub model: String,
    /// Files and directories, with all below them, that the sub-agent may change besides its private temp directory.
    pub write: Vec<WirePath>,
    /// The directory in `write` that has the project's package caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<WirePath>,
    /// Use of the network: off, on, or only to named hosts.
    pub net: Network,
    /// Local addresses that the sub-agent may connect to if its network is on.
    pub reach: Reach,
    /// Unix sockets of other programs that the sub-agent may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<WirePath>,
    /// Names of the MCP servers that the parent passed on, or whose tools the plan lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// SHA-256 of the sub-agent's access, in hexadecimal, as in the event `worker_started` of its worker.
    pub rights_digest: String,
    /// The part of the access that the parent does not have, and that a person approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// Maximum number of replies of the sub-agent's model, if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
}

/// The end of a sub-agent: facts from the supervisor, then the sub-agent's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SubAgentResult {
    /// Id of the sub-agent.
    pub agent: AgentId,
    /// The parent's call that requested the sub-agent; absent if the user requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The reason for the end.
    pub status: SubAgentStatus,
    /// A sentence about the end, if the status needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Files that the sub-agent changed, sorted, at most a thousand, without those that git ignores. They are the files
    /// that its file tools changed and, if no other agent wrote, those that differ between two scans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WirePath>,
    /// Reason that the sub-agent may have changed other files too; absent if it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Number of all denials; `denied` has the first of them.
    pub denials: u32,
    /// The first denials, each attempt once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Denial>,
    /// Number of requests that the model answered.
    pub steps: u32,
    /// Tokens of the agent, without those of sub-agents.
    pub usage: TokenUsage,
    /// Cost of the tokens in `usage`, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Time from the sub-agent's start to the end of its last process, in milliseconds.
    pub duration_ms: u64,
    /// The steps of the plan that the sub-agent executed, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<StepAccount>,
    /// The sub-agent's last message, shortened (untrusted).
    pub text: String,
}

/// Reason for the end of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum SubAgentStatus {
    /// The sub-agent's turn ended.
    Done,
    /// The sub-agent's turn ended after a denial, and no call succeeded after the denial.
    Denied,
    /// The sub-agent made no progress, or its model refused.
    GaveUp,
    /// A limit of the sub-agent's steps, or of the session's tokens, money or time, was reached.
    Budget,
    /// The user, or the end of the parent, interrupted the sub-agent.
    Interrupted,
    /// The requests to the model's provider failed.
    Provider,
    /// The sub-agent never started, or ended by a fault of Bailiwick.
    Crashed,
}

impl SubAgentStatus {
    /// Returns the word that stands for the value in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Denied => "denied",
            Self::GaveUp => "gave_up",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
            Self::Provider => "provider",
            Self::Crashed => "crashed",
        }
    }
}

/// A call that may write waits, since another agent may change the same files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WriteTurnAwaited {
    /// The call that waits.
    pub call: CallId,
    /// The agents that the call waits for.
    pub holders: Vec<AgentId>,
}

/// A call that waited for other agents may write now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WriteTurnTaken {
    /// The call that waited.
    pub call: CallId,
    /// Time that the call waited, in milliseconds.
    pub waited_ms: u64,
}

/// Displays `sub-agent 1.2 (write /p/src · net off): fix the parser`.
impl fmt::Display for SubAgentSpawned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sub-agent {}", self.agent)?;
        self.role.as_ref().map_or(Ok(()), |role| write!(f, " as {role}"))?;
        f.write_str(" (")?;
        if self.write.is_empty() {
            f.write_str("read-only")?;
        } else {
            f.write_str("write")?;
            self.write.iter().try_for_each(|path| match &self.caches {
                Some(caches) if caches == path => f.write_str(" caches"),
                _ => write!(f, " {}", Word(path)),
            })?;
        }
        write!(f, " · net {}{}", self.net, self.reach)?;
        if !self.sockets.is_empty() {
            f.write_str(" · connect")?;
            self.sockets.iter().try_for_each(|path| write!(f, " {}", Word(path)))?;
        }
        if !self.servers.is_empty() {
            write!(f, " · mcp {}", self.servers.join(" "))?;
        }
        write!(f, "): {}", self.task.lines().next().unwrap_or_default())
    }
}

/// Displays `sub-agent 1.2: done · 3 steps · 2 files changed · 1.2k in, 0% cached, 34 out · 2.5 s`.
impl fmt::Display for SubAgentResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = Account::of(self.usage, self.cost_usd);
        let unit = if self.steps == 1 { "step" } else { "steps" };
        let took = Duration::from_millis(self.duration_ms).as_secs_f64();
        let Self { agent, status, steps, .. } = self;
        write!(f, "sub-agent {agent}: {status} · {steps} {unit}")?;
        match self.files.len() {
            0 => {}
            1 => f.write_str(" · 1 file changed")?,
            several => write!(f, " · {several} files changed")?,
        }
        write!(f, " · {account} · {took:.1} s")?;
        self.plan.iter().try_for_each(|step| write!(f, "\n  {step}"))?;
        self.message.as_ref().map_or(Ok(()), |message| write!(f, "\n  {message}"))
    }
}

impl fmt::Display for SubAgentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str().replace('_', " "))
    }
}

/// Displays `call 3 waits: agent 1.2 writes the same files`.
impl fmt::Display for WriteTurnAwaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holders: Vec<_> = self.holders.iter().map(AgentId::as_str).collect();
        match holders.as_slice() {
            [] => write!(f, "call {} waits for its turn to write files", self.call),
            [one] => write!(f, "call {} waits: agent {one} writes the same files", self.call),
            several => {
                write!(f, "call {} waits: agents {} write the same files", self.call, several.join(", "))
            }
        }
    }
}

/// Displays `call 3 continues after 2.5 s`.
impl fmt::Display for WriteTurnTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waited = Duration::from_millis(self.waited_ms).as_secs_f64();
        write!(f, "call {} continues after {waited:.1} s", self.call)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn are_none(finished: &u32) -> bool {
    *finished == 0
}
