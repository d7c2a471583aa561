//! The subject of an approval: exactly what is carried out if it is given.

use std::borrow::Cow;

use ipc::denial::Denial;
use ipc::effect::Effect;
use ipc::id::CallId;
use ipc::rights::Grant;
use ipc::tool::ToolCall;
use sha2::{Digest, Sha256};

use super::effect::hexadecimal;
use super::{AgentSpawn, PlanProposal, Proposal};
use crate::tools::ExternalCall;

/// Exactly what is carried out if it is approved.
#[derive(Clone, Debug)]
pub enum Subject {
    /// An effect, by a one-shot worker.
    Effect {
        tool: ToolCall,
        proposal: Proposal,
        /// The denial that it would lift, where the command has run before.
        denied: Option<Box<Denial>>,
    },
    /// Changes of files of several calls, one after the other.
    Changes(Vec<(CallId, SubjectChange)>),
    /// A call, by the server of its tool.
    External(ExternalCall),
    /// The spawn of a sub-agent.
    Agent(Box<AgentSpawn>),
    /// The execution of a plan.
    Plan(Box<PlanProposal>),
}

/// A change of files that was prepared for a call.
#[derive(Clone, Debug)]
pub struct SubjectChange {
    pub tool: ToolCall,
    pub proposal: Proposal,
    /// Its access beyond the standing rights.
    pub grant: Grant,
}

impl Subject {
    /// The effect, where it is one.
    pub fn effect(&self) -> Option<&Effect> {
        match self {
            Self::Effect { proposal, .. } => Some(&proposal.effect),
            Self::Changes(_) | Self::External(_) | Self::Agent(_) | Self::Plan(_) => None,
        }
    }

    /// The denial that it would lift.
    pub fn denied(&self) -> Option<&Denial> {
        match self {
            Self::Effect { denied, .. } => denied.as_deref(),
            Self::Changes(_) | Self::External(_) | Self::Agent(_) | Self::Plan(_) => None,
        }
    }

    /// What names it in a request, and in an answer that repeats it.
    pub fn digest(&self) -> Cow<'_, str> {
        match self {
            Self::Effect { proposal, .. } => Cow::Borrowed(&proposal.digest),
            Self::Changes(all) => Cow::Owned(digest_of_changes(all)),
            Self::External(call) => Cow::Owned(digest_of_call(call)),
            Self::Agent(spawn) => Cow::Borrowed(&spawn.digest),
            Self::Plan(plan) => Cow::Borrowed(&plan.digest),
        }
    }
}

/// SHA-256 of the digests of all changes, in their order: each has the same length.
fn digest_of_changes(all: &[(CallId, SubjectChange)]) -> String {
    let hash = |mut hash: Sha256, (_, change): &(CallId, SubjectChange)| {
        hash.update(&change.proposal.digest);
        hash
    };
    hexadecimal(&all.iter().fold(Sha256::new(), hash).finalize())
}

/// SHA-256 of a call, in hexadecimal. Each part has its length before it, so that no two calls are the same bytes.
fn digest_of_call(call: &ExternalCall) -> String {
    let ExternalCall { server, tool, json } = call;
    let mut hash = Sha256::new();
    for part in [server, tool, json] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    hexadecimal(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(server: &str, tool: &str, json: &str) -> String {
        let [server, tool, json] = [server, tool, json].map(str::to_owned);
        digest_of_call(&ExternalCall { server, tool, json })
    }

    #[test]
    fn a_digest_is_one_of_the_server_the_tool_and_every_byte_of_the_arguments() {
        let digests = [
            digest("docs", "search", "{}"),
            digest("docs", "search", "{ }"),
            digest("docs", "searc", "h{}"),
            digest("docss", "earch", "{}"),
            digest("", "docssearch", "{}"),
            digest("docs", "", "search{}"),
        ];
        for (n, one) in digests.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(!digests[..n].contains(one), "{n}");
        }
        assert_eq!(digests[0], digest("docs", "search", "{}"));
    }
}
