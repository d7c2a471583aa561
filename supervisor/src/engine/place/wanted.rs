//! Sandbox that flags and settings request for a session.

use std::ffi::OsString;
use std::path::PathBuf;

use boundary::tripwire::BaselineChoice;
use ipc::confinement::{Bounds, TierChoice};
use ipc::rights::{Limits, Network, Reach};
use model::provider::socket_of;

use super::environment::home;
use crate::settings::args::ConfinementArgs;
use crate::settings::config::{ConfigOrigin, Effective, Element, at_home, can_ask};

/// Lifetime of a project's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Caches {
    /// The caches stay after the session if there is a directory for them.
    #[default]
    OutliveIt,
    /// The caches are removed at the end of the session.
    EndWithIt,
}

/// Decision about changes by an earlier session that was killed during a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// No check for such changes, because this session writes nothing in the project.
    #[default]
    Leave,
    /// The session does not start if there are such changes.
    Refuse,
    /// Asks the user at the terminal about each change.
    Ask,
    /// The same decision for all changes.
    All(BaselineChoice),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ConfinementOptions {
    pub net: Network,
    /// Local addresses that agents may connect to, in addition to `net`.
    pub reach: Reach,
    /// Directories besides the project that agents may write.
    pub write: Vec<NamedPath>,
    /// Sockets of other programs that agents may connect to.
    pub sockets: Vec<NamedPath>,
    /// Hidden paths in addition to the default ones.
    pub hide: Vec<NamedPath>,
    /// Paths in the project that agents must not change.
    pub protect: Vec<NamedPath>,
    /// Variables of commands: `NAME` passes one on, `NAME=VALUE` sets one.
    pub env: Vec<OsString>,
    /// True if commands run at a user's terminal.
    pub attended: bool,
    /// Limits of one call.
    pub limits: Limits,
    /// Resource limits of one worker.
    pub bounds: Bounds,
    /// True if the session may start even if a layer of the sandbox is missing.
    pub allow_degraded: bool,
    pub tier: TierChoice,
    pub caches: Caches,
    pub leftovers: Leftovers,
    /// Program in whose directory Bailiwick's other programs are; `None` for the running program.
    pub program: Option<PathBuf>,
}

/// A path from a flag or settings, absolute or relative to the project.
#[derive(Clone, Debug)]
pub(crate) struct NamedPath {
    pub path: PathBuf,
    pub origin: ConfigOrigin,
}

impl ConfinementOptions {
    /// Combines settings with the flags that have no setting.
    pub(crate) fn new(effective: &Effective, flags: &ConfinementArgs) -> Self {
        let leftovers = flags.baseline.map_or(Leftovers::Refuse, |word| Leftovers::All(word.into()));
        let caches = if flags.forget_caches { Caches::EndWithIt } else { Caches::OutliveIt };
        Self { caches, leftovers, ..Self::of(effective, flags.tier.into(), flags.allow_degraded) }
    }

    /// If `is_one` is true (one run of a batch), makes the caches end with the run.
    pub(crate) fn of_batch(self, is_one: bool) -> Self {
        let caches = if is_one { Caches::EndWithIt } else { self.caches };
        Self { caches, ..self }
    }

    /// Lets the user decide about changes of an earlier session, if there is a terminal and no flag has decided.
    pub(crate) fn asking(self) -> Self {
        match self.leftovers {
            Leftovers::Refuse if can_ask() => Self { leftovers: Leftovers::Ask, ..self },
            Leftovers::Leave | Leftovers::Refuse | Leftovers::Ask | Leftovers::All(_) => self,
        }
    }

    /// Derives the options from settings, for a front end without flags.
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

/// Returns the socket of a relay. It is to be hidden, because it leads out of the sandbox. `None` without a relay.
fn relay(effective: &Effective) -> Option<NamedPath> {
    let path = socket_of(effective.base_url()?)?.to_owned();
    Some(NamedPath { path, origin: ConfigOrigin::Flag("--base-url") })
}

fn named(elements: &[Element]) -> Vec<NamedPath> {
    let home = home(None).and_then(|home| std::fs::canonicalize(home).ok());
    let path = |element: &Element| match element.origin {
        // The shell has expanded `~` already.
        ConfigOrigin::Flag(_) => PathBuf::from(element.first()),
        _ => at_home(element.first(), home.as_deref()),
    };
    elements.iter().map(|element| NamedPath { path: path(element), origin: element.origin.clone() }).collect()
}
