//! Sub-agents: start, end, and their turns at writing.

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
    /// The call of its parent that requested it; absent if the user did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The purpose; absent if that is its parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// SHA-256 of the plan that it executes, in hexadecimal, if it executes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The number of the plan's first steps that earlier executions have finished.
    #[serde(default, skip_serializing_if = "are_none")]
    pub finished: u32,
    /// Task in the parent's words.
    pub task: String,
    /// Role, if the agent has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Model of the agent.
    pub model: String,
    /// Trees that it may change besides its own private temp.
    pub write: Vec<WirePath>,
    /// The root among them that has the project's package caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<WirePath>,
    /// Use of the network: off, on, or only to named hosts.
    pub net: Network,
    /// Reach of the network, if it is on.
    pub reach: Reach,
    /// Unix sockets of other programs that it may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<WirePath>,
    /// MCP servers that its parent passed on, or whose tools its plan lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// SHA-256 of its access, in hexadecimal, as its worker's start repeats it.
    pub rights_digest: String,
    /// The part of its access that its parent does not have, and that a person approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// Maximum number of replies of its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
}

/// The end of a sub-agent: the supervisor's account, then the sub-agent's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SubAgentResult {
    /// Id of the sub-agent.
    pub agent: AgentId,
    /// The call of its parent that requested it; absent if the user did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The kind of its end.
    pub status: SubAgentStatus,
    /// A sentence about it, if the status needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Changed files, sorted, at most a thousand: by file tools, or found by comparison if no other agent wrote.
    /// Without files that git ignores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WirePath>,
    /// Reason that it may have changed other files too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Number of all denials; `denied` has the first of them.
    pub denials: u32,
    /// The first of them, each attempt once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Denial>,
    /// Number of answered requests.
    pub steps: u32,
    /// Tokens of the agent, without those of sub-agents.
    pub usage: TokenUsage,
    /// Their price, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// The time from its start to the end of its last process, in milliseconds.
    pub duration_ms: u64,
    /// The steps of the plan that it executed, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<StepAccount>,
    /// Last message, shortened (untrusted).
    pub text: String,
}

/// The kind of a sub-agent's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum SubAgentStatus {
    /// The turn ended.
    Done,
    /// The turn ended after a denial, and no call succeeded after it.
    Denied,
    /// The agent made no progress, or its model refused.
    GaveUp,
    /// Its steps, or the session's tokens, money or time, are spent.
    Budget,
    /// The user, or its parent's end, interrupted it.
    Interrupted,
    /// The provider failed.
    Provider,
    /// The agent never started, or ended by a fault of Bailiwick.
    Crashed,
}

impl SubAgentStatus {
    /// The word for it, as in JSON.
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

/// A call that may write waits, since another agent may change the same places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WriteTurnAwaited {
    /// The call that waits.
    pub call: CallId,
    /// The agents that it waits for.
    pub holders: Vec<AgentId>,
}

/// A call that waited for other agents may write now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WriteTurnTaken {
    /// The call that waited.
    pub call: CallId,
    /// The time that it waited, in milliseconds.
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

/// Displays `call 3 goes on after 2.5 s`.
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
