//! Seccomp programs. [`rules`] lists the denied calls with reasons; the build script compiles the programs. All other
//! calls are allowed, since compilers, interpreters and test suites use them.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a condition of its own")]
pub struct Policy {
    /// True if the confined programs use the machine's network namespace.
    pub machines_network: bool,
    pub root: bool,
    /// True if the seccomp program must deny truncation, since Landlock does not.
    pub truncate: bool,
    pub tier: Tier,
    pub neighbours: bool,
}

impl Policy {
    pub fn of(net: &Network, platform: Platform, tier: Tier) -> Self {
        Self {
            machines_network: net.is_the_machines(),
            root: platform.root,
            truncate: (1..TRUNCATE).contains(&platform.abi),
            tier,
            neighbours: false,
        }
    }

    #[must_use]
    pub fn within(self, reach: Reach) -> Self {
        Self { neighbours: reach.link_local, ..self }
    }

    pub fn case(self) -> Case {
        let Self { machines_network: network, root, truncate, tier, neighbours } = self;
        let (full, mediated) = (tier == Tier::Full, tier != Tier::FloorUnmediated);
        Case { full, mediated, network, root, truncate, neighbours }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Program {
    instructions: &'static [sock_filter],
    rules: u32,
}

impl Program {
    /// Returns the program that every worker and every confined program gets.
    pub fn standing(policy: Policy) -> Self {
        Self::built(RuleKind::Standing, policy.case())
    }

    /// Returns the additional program for a command that only reads.
    pub fn read_only(policy: Policy) -> Self {
        Self::built(RuleKind::ReadOnly, policy.case())
    }

    /// Returns the additional program for a command that only reads and was granted the network.
    pub fn read_only_online(policy: Policy) -> Self {
        Self::built(RuleKind::ReadOnlyOnline, policy.case())
    }

    /// Returns the additional program for a command that declared that it needs no network.
    pub fn offline(policy: Policy) -> Self {
        Self::built(RuleKind::Offline, policy.case())
    }

    pub fn no_execution() -> Self {
        Self::built(RuleKind::NoExecution, Case::default())
    }

    fn built(kind: RuleKind, case: Case) -> Self {
        built::PROGRAMS[kind as usize][case.index()]
    }

    pub(crate) fn instructions(&self) -> &'static [sock_filter] {
        self.instructions
    }

    pub fn rules(&self) -> u32 {
        self.rules
    }

    /// Attaches the program to the calling thread. Async-signal-safe.
    pub fn attach(&self) -> io::Result<()> {
        system::set_no_new_privs()?;
        system::attach_filter(self.instructions)
    }
}

#[expect(clippy::unreadable_literal, reason = "it is generated")]
mod built {
    use super::{Program, sock_filter};

    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

#[cfg(test)]
mod tests;
