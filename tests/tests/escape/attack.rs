//! Rows of the attack table: an attack, its effect without a sandbox, and how each tier denies it.

use std::fmt;

use ipc::confinement::Tier;
use tests::{User, World};

/// Groups of attacks that must be denied.
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

/// Effect of an attack without a sandbox. It shows that the sandbox causes the denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unconfined {
    /// The attack harms the victim.
    Harms,
    /// The attack succeeds.
    Works,
    /// The kernel accepts the attack, but finds wrong arguments or a missing module. The error differs from that of a
    /// denied attack.
    Reaches,
}

/// Result of an attack in a tier. Only the last variant harms the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The attack fails with one of these errors. -1 stands for a program that failed or that the kernel killed.
    With(&'static [i32]),
    /// The attack succeeds, but on another object than the victim's. Only the victim's state shows that.
    Apart,
    /// The attack succeeds, for this reason. `docs/residual-risks.md` gives it, too.
    Open(&'static str),
}

/// Users who can carry out an attack without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Anybody,
    /// Only root. The attack is tried as other users too, but without a control outside of the sandbox.
    Root,
    /// Only root. The attack is not tried as other users.
    RootAlone,
    /// Only a plain user, since root can do as much without the attack.
    Plain,
    /// Only a user with capabilities. Processes outside of the sandbox then have them, and the attacker lacks them.
    Capable,
    /// Only a user without capabilities: a plain user, or root in a container that has dropped all.
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

    /// True if the attack is tried as this user.
    pub(crate) fn concerns(&self, user: User) -> bool {
        match self.who {
            Who::Anybody | Who::Root => true,
            Who::RootAlone => user.uid() == 0,
            Who::Plain => user == User::Plain,
            Who::Capable => user.is_capable(),
            Who::Powerless => !user.is_capable(),
        }
    }

    /// True if this user can carry out the attack without a sandbox.
    pub(crate) fn is_possible(&self, user: User) -> bool {
        self.concerns(user) && (self.who != Who::Root || user.uid() == 0)
    }
}

/// Prefixes of the rows of the table, each with the users who can carry out such an attack.
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

/// Result of an attack, as the probe prints it.
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

/// World, tier and network access with which attacks are made.
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
