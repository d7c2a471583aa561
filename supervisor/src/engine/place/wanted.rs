//! What is wanted of a session's place: flags and settings, added up.

use std::ffi::OsString;
use std::path::PathBuf;

use boundary::tripwire::BaselineChoice;
use ipc::confinement::{Bounds, TierChoice};
use ipc::rights::{Limits, Network, Reach};
use model::provider::socket_of;

use super::environment::home;
use crate::settings::args::ConfinementArgs;
use crate::settings::config::{ConfigOrigin, Effective, Element, at_home, can_ask};

/// Treatment of a project's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Caches {
    /// They outlive the session, where they can.
    #[default]
    OutliveIt,
    /// They end with it, as the project does.
    EndWithIt,
}

/// The word on what a session left that was ended in the middle of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// Nothing is looked at: nothing is written here.
    #[default]
    Leave,
    /// The start is refused where something differs.
    Refuse,
    /// A person at the terminal is asked about each difference.
    Ask,
    /// The same word for all of them.
    All(BaselineChoice),
}

/// The requested confinement.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfinementOptions {
    pub net: Network,
    /// Where it leads besides.
    pub reach: Reach,
    /// Further write roots.
    pub write: Vec<NamedPath>,
    /// Unix sockets of other programs.
    pub sockets: Vec<NamedPath>,
    /// Hidden paths beside the default ones.
    pub hide: Vec<NamedPath>,
    /// Places inside the project that stay as they are.
    pub protect: Vec<NamedPath>,
    /// Variables: `NAME` passes, `NAME=VALUE` sets.
    pub env: Vec<OsString>,
    /// True if somebody sits at the terminal of the commands.
    pub attended: bool,
    /// Bounds on one call.
    pub limits: Limits,
    /// Resource limits of one worker.
    pub bounds: Bounds,
    /// Whether to start although a layer is missing.
    pub allow_degraded: bool,
    /// The requested tier.
    pub tier: TierChoice,
    /// Treatment of the project's caches.
    pub caches: Caches,
    /// The word on what an earlier session left.
    pub leftovers: Leftovers,
    /// The program beside which the others of the system lie, if it is not the running one.
    pub program: Option<PathBuf>,
}

/// A path that somebody named, relative to the project or absolute.
#[derive(Clone, Debug)]
pub(crate) struct NamedPath {
    pub path: PathBuf,
    pub origin: ConfigOrigin,
}

impl ConfinementOptions {
    /// What settings and flags add up to; of the flags only those that nobody can set otherwise are looked at.
    pub(crate) fn new(effective: &Effective, flags: &ConfinementArgs) -> Self {
        let leftovers = flags.baseline.map_or(Leftovers::Refuse, |word| Leftovers::All(word.into()));
        let caches = if flags.forget_caches { Caches::EndWithIt } else { Caches::OutliveIt };
        Self { caches, leftovers, ..Self::of(effective, flags.tier.into(), flags.allow_degraded) }
    }

    /// The same for a run of a batch, if it is one: its caches end with it.
    pub(crate) fn of_batch(self, is_one: bool) -> Self {
        let caches = if is_one { Caches::EndWithIt } else { self.caches };
        Self { caches, ..self }
    }

    /// Has a person asked about what an earlier session left, where there is one and no flag says it.
    pub(crate) fn asking(self) -> Self {
        match self.leftovers {
            Leftovers::Refuse if can_ask() => Self { leftovers: Leftovers::Ask, ..self },
            Leftovers::Leave | Leftovers::Refuse | Leftovers::Ask | Leftovers::All(_) => self,
        }
    }

    /// The same, for a front end that has no flags.
    pub(crate) fn of(effective: &Effective, tier: TierChoice, allow_degraded: bool) -> Self {
        Self {
            net: effective.net(),
            reach: effective.reach(),
            write: named(effective.write()),
            sockets: named(effective.sockets()),
            hide: named(effective.hide()).into_iter().chain(relay(effective)).collect(),
            protect: named(effective.protect()),
            env: effective.env().iter().map(|element| element.first().to_owned()).collect(),
            attended: false,
            limits: effective.call_limits(),
            bounds: effective.bounds(),
            allow_degraded,
            tier,
            caches: Caches::default(),
            leftovers: Leftovers::default(),
            program: None,
        }
    }
}

/// The socket behind which the model is: an agent that reached it would have a way out.
fn relay(effective: &Effective) -> Option<NamedPath> {
    let path = socket_of(effective.base_url()?)?.to_owned();
    Some(NamedPath { path, origin: ConfigOrigin::Flag("--base-url") })
}

fn named(elements: &[Element]) -> Vec<NamedPath> {
    let home = home(None).and_then(|home| std::fs::canonicalize(home).ok());
    let path = |element: &Element| match element.origin {
        // A shell has had its say already.
        ConfigOrigin::Flag(_) => PathBuf::from(element.first()),
        _ => at_home(element.first(), home.as_deref()),
    };
    elements.iter().map(|element| NamedPath { path: path(element), origin: element.origin.clone() }).collect()
}
