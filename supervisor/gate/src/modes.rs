//! The table of approval modes: the access of an agent by activity, rank and mode, and the handling of calls beyond it.
//!
//! All other code asks [`permits`] and neither compares nor matches modes, so that a new mode does not compile until
//! the table has it.

use ipc::path::WirePath;
pub use protocol::approval::ApprovalMode;
use serde::Serialize;

use crate::activity::Activity;

/// Mode whose access includes that of all other modes.
pub const WIDEST: ApprovalMode = ApprovalMode::Auto;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    Top,
    /// A sub-agent. The call that started it determines its access.
    Sub,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub activity: Activity,
    pub rank: Rank,
}

impl Position {
    /// Top-level agent that executes, which a person talks to.
    pub const FIRST: Self = Self { activity: Activity::Execute, rank: Rank::Top };
    pub const SUB: Self = Self { activity: Activity::Execute, rank: Rank::Sub };
    pub const PLANNER: Self = Self { activity: Activity::Plan, rank: Rank::Top };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProjectRight {
    /// The project is writable, and so are the directories that git and caches need.
    Write,
    Read,
    /// The call that started the agent determines which directories are writable.
    Given,
}

/// Handling of a call that the agent's access does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beyond {
    Ask,
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModeApprovals {
    Hold,
    /// No approval is possible, and a change to this mode ends earlier approvals.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkAfter {
    Kept,
    /// The network is turned off: a user who approves nothing wants nothing sent out either.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permits {
    project: ProjectRight,
    beyond: Beyond,
    approvals: ModeApprovals,
    network: NetworkAfter,
}

#[expect(clippy::match_same_arms, reason = "a cell is read and changed by itself")]
pub const fn permits(position: Position, mode: ApprovalMode) -> Permits {
    use Activity::{Execute, Plan};
    use ApprovalMode::{Ask, Auto, Deny};
    use Rank::{Sub, Top};
    let (project, beyond, approvals, network) = match (position.activity, position.rank, mode) {
        (Execute, Top, Ask) => (ProjectRight::Read, Beyond::Ask, ModeApprovals::Hold, NetworkAfter::Kept),
        (Execute, Top, Auto) => (ProjectRight::Write, Beyond::Deny, ModeApprovals::Hold, NetworkAfter::Kept),
        (Execute, Top, Deny) => (ProjectRight::Read, Beyond::Deny, ModeApprovals::End, NetworkAfter::Off),
        (Execute, Sub, Ask | Auto) => {
            (ProjectRight::Given, Beyond::Deny, ModeApprovals::Hold, NetworkAfter::Kept)
        }
        (Execute, Sub, Deny) => (ProjectRight::Given, Beyond::Deny, ModeApprovals::End, NetworkAfter::Off),
        (Plan, Top | Sub, Ask | Auto) => {
            (ProjectRight::Read, Beyond::Deny, ModeApprovals::Hold, NetworkAfter::Kept)
        }
        (Plan, Top | Sub, Deny) => (ProjectRight::Read, Beyond::Deny, ModeApprovals::End, NetworkAfter::Off),
    };
    Permits { project, beyond, approvals, network }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PermitRow {
    pub agent: &'static str,
    pub mode: ApprovalMode,
    pub project: &'static str,
    pub beyond: &'static str,
    pub approvals: &'static str,
    pub network_after_change: &'static str,
}

impl PermitRow {
    pub fn of_mode(mode: ApprovalMode) -> [Self; 3] {
        let agents =
            [("main agent", Position::FIRST), ("sub-agent", Position::SUB), ("planner", Position::PLANNER)];
        agents.map(|(agent, position)| {
            let Permits { project, beyond, approvals, network } = permits(position, mode);
            Self {
                agent,
                mode,
                project: match project {
                    ProjectRight::Write => "write",
                    ProjectRight::Read => "read",
                    ProjectRight::Given => "as its parent agent allows",
                },
                beyond: match beyond {
                    Beyond::Ask => "asks you",
                    Beyond::Deny => "denied",
                },
                approvals: match approvals {
                    ModeApprovals::Hold => "stay valid",
                    ModeApprovals::End => "none",
                },
                network_after_change: match network {
                    NetworkAfter::Kept => "unchanged",
                    NetworkAfter::Off => "off",
                },
            }
        })
    }
}

impl Permits {
    pub const fn writes_project(self) -> bool {
        match self.project {
            ProjectRight::Write => true,
            ProjectRight::Read | ProjectRight::Given => false,
        }
    }

    pub const fn asks(self) -> bool {
        match self.beyond {
            Beyond::Ask => true,
            Beyond::Deny => false,
        }
    }

    pub const fn keeps_approvals(self) -> bool {
        match self.approvals {
            ModeApprovals::Hold => true,
            ModeApprovals::End => false,
        }
    }

    /// True if the project is writable in this mode, or can become so by an approval.
    pub const fn may_come_to_write(self) -> bool {
        self.writes_project() || self.asks()
    }

    pub const fn turns_network_off(self) -> bool {
        match self.network {
            NetworkAfter::Kept => false,
            NetworkAfter::Off => true,
        }
    }
}

/// True if a change between these modes takes access or approvals from the agents of a session.
pub const fn takes_away(from: ApprovalMode, to: ApprovalMode) -> bool {
    let (before, after) = (permits(Position::FIRST, from), permits(Position::FIRST, to));
    !after.keeps_approvals() || before.writes_project() && !after.writes_project()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Directories that are writable in mode `auto` alone: the project, and what git and caches need.
    pub auto: Vec<WirePath>,
    /// Directories that are writable in every mode.
    pub always: Vec<WirePath>,
}

impl Modes {
    /// Returns the writable directories of a mode, without the private temp directory.
    pub fn roots(&self, mode: ApprovalMode) -> impl Iterator<Item = &WirePath> {
        let auto = if permits(Position::FIRST, mode).writes_project() { self.auto.as_slice() } else { &[] };
        self.always.iter().chain(auto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: &str = include_str!("../../../docs/usage.md");

    fn rows() -> String {
        let mut rows: Vec<_> = ApprovalMode::ALL.into_iter().flat_map(PermitRow::of_mode).collect();
        rows.sort_by_key(|row| {
            ["main agent", "sub-agent", "planner"].iter().position(|agent| *agent == row.agent)
        });
        let line = |row: PermitRow| {
            let PermitRow { agent, mode, project, beyond, approvals, network_after_change } = row;
            format!("| {agent} | `{mode}` | {project} | {beyond} | {approvals} | {network_after_change} |\n")
        };
        rows.into_iter().map(line).collect()
    }

    #[test]
    fn the_guide_has_the_table() {
        assert!(USAGE.contains(&rows()), "docs/usage.md, below Access:\n{}", rows());
    }

    #[test]
    fn every_mode_is_within_the_widest() {
        let modes = Modes { auto: vec!["/p".into()], always: vec!["/data".into()] };
        let widest: Vec<_> = modes.roots(WIDEST).collect();
        for mode in ApprovalMode::ALL {
            assert!(modes.roots(mode).all(|root| widest.contains(&root)), "{mode}");
        }
        assert!(widest.contains(&&"/p".into()));
    }

    #[test]
    fn nobody_but_an_agent_of_the_top_level_that_executes_asks() {
        for mode in ApprovalMode::ALL {
            for (activity, rank) in
                [(Activity::Execute, Rank::Sub), (Activity::Plan, Rank::Top), (Activity::Plan, Rank::Sub)]
            {
                let cell = permits(Position { activity, rank }, mode);
                assert!(!cell.asks() && !cell.writes_project(), "{activity:?}, {rank:?}, {mode}");
            }
        }
    }

    #[test]
    fn a_change_takes_away_what_the_later_mode_lacks() {
        use ApprovalMode::{Ask, Auto, Deny};
        let taking = [(Ask, Deny), (Auto, Ask), (Auto, Deny), (Deny, Deny)];
        for from in ApprovalMode::ALL {
            for to in ApprovalMode::ALL {
                assert_eq!(takes_away(from, to), taking.contains(&(from, to)), "{from} to {to}");
            }
        }
    }
}
