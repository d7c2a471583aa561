//! A child of the floor tier that was forked before the rights were known: it has given up all that every child gives up, and
//! waits for its rules.
//!
//! Nothing in it depends on what may be read or written. What it does depend on (the seccomp programs, and with them the network;
//! the working directory; the platform) is compared with what is ordered, and where that differs it is ended, and another is
//! forked.

use ipc::confinement::Confinement;

use super::floor::Child;
use super::granted::Granted;
use super::ruleset::Ruleset;
use crate::stage::Failure;

/// A child that waits, and what it was made for.
#[derive(Debug)]
pub(super) struct Waiting {
    /// There until it is taken.
    child: Option<Child>,
    ruleset: Ruleset,
}

impl Waiting {
    /// Makes sure that the child has a table of descriptors of its own: from then on this process may close what it likes.
    pub(super) fn of(mut child: Child, ruleset: Ruleset) -> Result<Self, Failure> {
        let separated = child.separate();
        let waiting = Self { child: Some(child), ruleset };
        separated.map(|()| waiting)
    }

    /// It will get all of its rules.
    pub(super) fn forget_rules(&mut self) {
        self.child.iter_mut().for_each(|child| child.rules.granted = None);
    }

    /// The child, if it is one for this; otherwise the ruleset that was made for it.
    pub(super) fn into_child(
        mut self,
        confinement: &Confinement,
        ruleset: &Ruleset,
    ) -> Result<Child, Option<Granted>> {
        let fits = |child: &Child| {
            let place = Child::open_project(confinement).map(|(_, place)| place);
            place.is_ok_and(|place| place == child.project) && child.is_alive()
        };
        let bound = !confinement.terminal && self.ruleset.binds_like(ruleset);
        if bound && self.child.as_ref().is_some_and(fits) {
            return self.child.take().ok_or(None);
        }
        Err(self.child.as_mut().and_then(|child| child.rules.granted.take()))
    }
}

/// A child that is of no use is ended.
impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            child.abandon();
        }
    }
}
