//! Actions that approval requests are about.

use std::borrow::Cow;

use ipc::denial::Denial;
use ipc::effect::Effect;
use ipc::id::CallId;
use ipc::rights::Grant;
use ipc::text::hexadecimal;
use ipc::tool::ToolCall;
use sha2::{Digest, Sha256};

use super::{AgentSpawn, PlanProposal, Proposal};
use crate::tools::{ExternalCall, FetchCall};

/// An action that is carried out if it is approved.
#[derive(Clone, Debug)]
pub enum Subject {
    Effect {
        tool: ToolCall,
        proposal: Proposal,
        /// Denial by the sandbox that the approval would lift; `None` if the action was not tried before.
        denied: Option<Box<Denial>>,
    },
    /// Changes of files by several calls, applied in order.
    Changes(Vec<(CallId, SubjectChange)>),
    External(ExternalCall),
    Fetch(FetchCall),
    Agent(Box<AgentSpawn>),
    Plan(Box<PlanProposal>),
}

/// Change of files that a worker prepared for a call.
#[derive(Clone, Debug)]
pub struct SubjectChange {
    pub tool: ToolCall,
    pub proposal: Proposal,
    /// Access that the change needs and the agent does not have permanently.
    pub grant: Grant,
}

impl Subject {
    pub fn effect(&self) -> Option<&Effect> {
        match self {
            Self::Effect { proposal, .. } => Some(&proposal.effect),
            Self::Changes(_) | Self::External(_) | Self::Fetch(_) | Self::Agent(_) | Self::Plan(_) => None,
        }
    }

    pub fn denied(&self) -> Option<&Denial> {
        match self {
            Self::Effect { denied, .. } => denied.as_deref(),
            Self::Changes(_) | Self::External(_) | Self::Fetch(_) | Self::Agent(_) | Self::Plan(_) => None,
        }
    }

    /// Returns the digest that identifies the action in a request and its answer.
    pub fn digest(&self) -> Cow<'_, str> {
        match self {
            Self::Effect { proposal, .. } => Cow::Borrowed(&proposal.digest),
            Self::Changes(all) => Cow::Owned(digest_of_changes(all)),
            Self::External(call) => Cow::Owned(digest_of_call(call)),
            Self::Fetch(call) => Cow::Owned(hexadecimal(&Sha256::digest(call.url.to_string()))),
            Self::Agent(spawn) => Cow::Borrowed(&spawn.digest),
            Self::Plan(plan) => Cow::Borrowed(&plan.digest),
        }
    }
}

/// Returns the SHA-256 of the joined digests of all changes. All digests have the same length.
fn digest_of_changes(all: &[(CallId, SubjectChange)]) -> String {
    let hash = |mut hash: Sha256, (_, change): &(CallId, SubjectChange)| {
        hash.update(&change.proposal.digest);
        hash
    };
    hexadecimal(&all.iter().fold(Sha256::new(), hash).finalize())
}

/// Returns the SHA-256 of a call in hexadecimal. Lengths are hashed too: different calls have different bytes.
fn digest_of_call(call: &ExternalCall) -> String {
    let ExternalCall { server, tool, json, guest } = call;
    let guest = guest.as_ref().map(|guest| [guest.definition.clone(), guest.access.to_string()]);
    let mut hash = Sha256::new();
    for part in [server, tool, json].into_iter().chain(guest.iter().flatten()) {
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
        digest_of_call(&ExternalCall { server, tool, json, guest: None })
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
