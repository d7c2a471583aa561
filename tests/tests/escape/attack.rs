//! One row of the table: the act, its effect unconfined, and the denial in each tier.

use std::fmt;

use ipc::confinement::Tier;
use tests::{User, World};

/// The groups of what must be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    WriteOutside,
    MetadataOutside,
    SetId,
    Processes,
    Ipc,
    UnixSockets,
    Network,
    Kernel,
    Secrets,
    Terminal,
    Information,
}

/// The result of an act unconfined, which proves that the denial is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unconfined {
    /// It harms the victim.
    Harms,
    /// It succeeds.
    Works,
    /// The kernel examines it and finds wrong arguments or a missing module: another error than that of the denial.
    Reaches,
}

/// The result of an act in a tier. The victim is unharmed except in the last case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It fails with one of these errors; -1 is a program that failed or was killed by the kernel.
    With(&'static [i32]),
    /// Another service answers, and the victim judges.
    Apart,
    /// It succeeds, for this reason, which `docs/residual-risks.md` has too.
    Open(&'static str),
}

/// The users who can do an act unconfined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Anybody,
    /// Only root; there is no control as another user.
    Root,
    /// Only root, who alone gains anything by it.
    RootAlone,
    /// Only a plain user, because root has the result already.
    Plain,
    /// Only a user with capabilities, because the processes outside have more than those inside.
    Capable,
    /// Only a user without capabilities: a plain user, or the root of a container that dropped them all.
    Powerless,
}

#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) group: Group,
    pub(crate) act: String,
    pub(crate) who: Who,
    pub(crate) unconfined: Unconfined,
    pub(crate) full: Held,
    pub(crate) floor: Held,
}

impl Attack {
    pub(crate) fn held(&self, tier: Tier) -> Held {
        match tier {
            Tier::Full => self.full,
            Tier::Floor | Tier::FloorUnmediated => self.floor,
        }
    }

    /// True if the act is meaningful for this user.
    pub(crate) fn concerns(&self, user: User) -> bool {
        match self.who {
            Who::Anybody | Who::Root => true,
            Who::RootAlone => user.uid() == 0,
            Who::Plain => user == User::Plain,
            Who::Capable => user.is_capable(),
            Who::Powerless => !user.is_capable(),
        }
    }

    /// True if this user can do it unconfined.
    pub(crate) fn is_possible(&self, user: User) -> bool {
        self.concerns(user) && (self.who != Who::Root || user.uid() == 0)
    }
}

/// Prefixes of an act that name its possible users.
const BY: [(&str, Who); 5] = [
    ("root: ", Who::Root),
    ("root alone: ", Who::RootAlone),
    ("plain: ", Who::Plain),
    ("capable: ", Who::Capable),
    ("powerless: ", Who::Powerless),
];

pub(crate) fn rows(
    group: Group,
    unconfined: Unconfined,
    full: Held,
    floor: Held,
    acts: &[&str],
) -> Vec<Attack> {
    let row = |act: &&str| {
        let by = |name, who| act.strip_prefix(name).map(|act| (who, act));
        let (who, act) = BY.into_iter().find_map(|(name, who)| by(name, who)).unwrap_or((Who::Anybody, act));
        Attack { group, act: act.to_owned(), who, unconfined, full, floor }
    };
    acts.iter().map(row).collect()
}

/// The output of a probe about an act.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) errno: i64,
    pub(crate) said: String,
}

impl Tried {
    pub(crate) fn of(line: &str) -> Self {
        let line: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { errno: line["errno"].as_i64().unwrap(), said: line["said"].as_str().unwrap().to_owned() }
    }

    pub(crate) fn all(text: &str) -> Vec<Self> {
        text.lines().map(Self::of).collect()
    }

    pub(crate) fn is(&self, errnos: &[i32]) -> bool {
        errnos.iter().any(|errno| i64::from(*errno) == self.errno)
    }
}

/// The place of a run of attacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) world: &'a World,
    pub(crate) tier: Tier,
    pub(crate) net: &'static str,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tier, net {}, uid {}", self.tier, self.net, self.world.user().uid())
    }
}
