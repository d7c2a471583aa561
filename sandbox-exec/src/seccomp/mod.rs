//! System calls that are denied: [`rules`] is the data, with a reason for each; the build script makes programs of it, and
//! at run time nothing is left but to attach one.
//!
//! Everything else is allowed, since compilers, interpreters and test suites use everything else.

#[cfg(test)]
#[expect(unreachable_pub, reason = "the build script is another crate")]
mod assemble;
pub mod rules;

use std::io;

use ipc::confinement::Tier;
use ipc::rights::{Network, Reach};
use seccompiler::sock_filter;
use serde::{Deserialize, Serialize};

use crate::platform::{Platform, TRUNCATE};
use crate::system;
use rules::{Case, RuleKind};

/// What a program has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Policy {
    /// The network.
    pub net: Network,
    /// Whether it runs as uid 0.
    pub root: bool,
    /// Whether truncation has to be held here, since Landlock does not.
    pub truncate: bool,
    /// What else holds.
    pub tier: Tier,
    /// True if link-local addresses are within reach.
    pub neighbours: bool,
}

impl Policy {
    /// The policy of rights on a platform.
    pub fn of(net: Network, platform: Platform, tier: Tier) -> Self {
        Self {
            net,
            root: platform.root,
            truncate: (1..TRUNCATE).contains(&platform.abi),
            tier,
            neighbours: false,
        }
    }

    /// The same with a network that leads so far.
    #[must_use]
    pub fn within(self, reach: Reach) -> Self {
        Self { neighbours: reach.link_local, ..self }
    }

    /// What of it the rules depend on.
    pub fn case(self) -> Case {
        let Self { net, root, truncate, tier, neighbours } = self;
        let (full, mediated) = (tier == Tier::Full, tier != Tier::FloorUnmediated);
        Case { full, mediated, network: net.is_the_machines(), root, truncate, neighbours }
    }
}

/// A program, ready to be attached.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    instructions: &'static [sock_filter],
    rules: u32,
}

impl Program {
    /// The program that every worker and every confined program runs under.
    pub fn standing(policy: Policy) -> Self {
        Self::built(RuleKind::Standing, policy.case())
    }

    /// The program that is stacked on it for a command that said it only reads.
    pub fn read_only(policy: Policy) -> Self {
        Self::built(RuleKind::ReadOnly, policy.case())
    }

    /// The program that is stacked on it for a command that said it only reads, and was given the network all the same.
    pub fn read_only_online(policy: Policy) -> Self {
        Self::built(RuleKind::ReadOnlyOnline, policy.case())
    }

    /// The program that is stacked on it, where it is one of a network, for a command that said it needs none.
    pub fn offline(policy: Policy) -> Self {
        Self::built(RuleKind::Offline, policy.case())
    }

    /// The program for a worker that may run nothing. It is the same under every policy.
    pub fn no_execution() -> Self {
        Self::built(RuleKind::NoExecution, Case::default())
    }

    fn built(kind: RuleKind, case: Case) -> Self {
        built::PROGRAMS[kind as usize][case.index()]
    }

    /// What the kernel will run.
    pub(crate) fn instructions(&self) -> &'static [sock_filter] {
        self.instructions
    }

    /// How many rules it has.
    pub fn rules(&self) -> u32 {
        self.rules
    }

    /// Attaches it to this thread, for good. Async-signal-safe.
    pub fn attach(&self) -> io::Result<()> {
        system::set_no_new_privs()?;
        system::attach_filter(self.instructions)
    }
}

/// What the build script made for this architecture: by [`RuleKind`], then by [`Case`].
#[expect(clippy::unreadable_literal, reason = "it is generated")]
mod built {
    use super::{Program, sock_filter};

    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

#[cfg(test)]
mod tests;
