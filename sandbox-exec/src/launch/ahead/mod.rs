//! What a sandbox-exec that waits for its order has done by then: listed directories, added rules to rulesets, and in the floor
//! forked a child that waits for the rest.
//!
//! Nothing of it decides anything. The rights that are ordered are compiled as they always are; only what an unchanged directory
//! would say again is not asked again, only rules that they come to are not added again, and only a child that is bound as they
//! say is not forked again.

mod unchanged;

use std::ffi::OsString;
use std::path::Path;

use ipc::confinement::{Confinement, Identity, TierChoice};
use ipc::rights::Network;

use self::unchanged::Unchanged;
use super::floor::{self, Child};
use super::granted::Granted;
use super::ground::Ground;
use super::rules::Seen;
use super::ruleset::Ruleset;
use super::waiting::Waiting;
use super::{at, full};
use crate::cgroup::Cgroup;
use crate::compile::PathRule;
use crate::descendants::Bound;
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;
use crate::tree::Host;

/// What was done ahead.
#[derive(Debug, Default)]
pub struct Ahead {
    /// Who this process has become for it.
    identity: Option<Identity>,
    ground: Option<Ground>,
    unchanged: Option<Unchanged>,
    /// Rulesets with rules in these directories, for each network.
    granted: Vec<Granted>,
    child: Option<Waiting>,
    /// The domain of signals, if this process has entered that: from then on it is a broker of the floor, and nothing else.
    pub(super) bound: Option<Bound>,
    /// Why it is, where the best tier is wanted.
    pub(super) instead: Option<String>,
}

/// What is likely to be ordered.
#[derive(Debug)]
pub struct Likely {
    /// How the program will be confined; in the floor tier where that is what the best one comes to.
    pub confinement: Confinement,
    /// Why that is the floor, where the best tier is wanted.
    pub instead: Option<String>,
    /// Whether there will be reports.
    pub told: bool,
}

impl Ahead {
    /// Does what a confinement like this one will need, as the user whom it is for. What cannot be done ahead is not.
    pub fn of(likely: Likely, command: &[OsString]) -> Result<Self, Failure> {
        let Likely { confinement, instead, told } = likely;
        let mut ahead = Self { identity: confinement.identity, instead, ..Self::default() };
        if let Some(identity) = ahead.identity {
            privilege::become_user(identity).map_err(at(Stage::Identity))?;
        }
        let is_floor = confinement.tier == TierChoice::Floor;
        if is_floor {
            // As the floor does before it forks.
            privilege::drop_bounds().map_err(at(Stage::Capabilities))?;
        }
        let ground = ahead.ground();
        ahead.ground = Some(ground);
        let seen = if is_floor {
            Seen::floor(&confinement, ground)
        } else {
            Seen::full(&confinement, ground, &full::layout(&confinement, command))
        };
        let ruleset = Ruleset::new(&seen, told)?;
        ahead.list(&seen, &ruleset);
        // It may wait for long, and nobody of the same user has to look into it.
        system::make_undumpable().map_err(at(Stage::Start))?;
        // Who ends one that waits leaves a control group behind.
        if is_floor && Cgroup::place().is_none() && !confinement.terminal {
            let bound = floor::enter_bound(ruleset.platform)?;
            ahead.bound = Some(bound);
            let granted = ahead.take_granted(&ruleset);
            let child = Child::fork(&confinement, &ruleset, granted, Some(bound))?;
            ahead.child = Some(Waiting::of(child, ruleset)?);
            // What the fork left to both is copied when one of them writes to it: the order's memory is made ours now.
            drop(seen.plan(&ahead.host()));
        }
        Ok(ahead)
    }

    /// Lists what its rules depend on, and adds those that lie in what does not change.
    fn list(&mut self, seen: &Seen, ruleset: &Ruleset) {
        let Ok(mut unchanged) = Unchanged::new() else { return };
        // Which directories it needs; what lies in them is asked once each has its stamp.
        let needed = Host::default();
        let Ok(plan) = seen.plan(&needed) else { return };
        unchanged.list(needed.into_listings().into_keys());
        let written = |path: &Path| seen.confinement.rights.write.iter().any(|root| path.starts_with(root));
        let known = |rule: &&PathRule| {
            let in_known = |directory| unchanged.has(directory) && !written(directory);
            seen.is_the_hosts(&rule.path) && rule.path.parent().is_some_and(in_known)
        };
        let rules: Vec<_> = plan.rules.iter().filter(known).cloned().collect();
        let of = |net| Granted::of(net, ruleset.tier, ruleset.platform, &rules);
        self.granted = [Network::Off, Network::On].into_iter().filter_map(of).collect();
        self.unchanged = Some(unchanged);
    }

    /// Whether this process can become what is ordered: it cannot become another user again, nor leave a domain.
    pub fn serves(&self, confinement: &Confinement) -> bool {
        let is_theirs = self.identity.is_none() || self.identity == confinement.identity;
        is_theirs && (self.bound.is_none() || confinement.tier != TierChoice::Full)
    }

    /// Before this process becomes somebody: a child of another user it could not even end, then.
    pub(super) fn leave_to(&mut self, identity: Identity) {
        if self.identity != Some(identity) {
            self.child = None;
        }
    }

    /// Forgets what has changed since.
    pub(super) fn look_again(&mut self) {
        let still = self.unchanged.take().and_then(Unchanged::still);
        if !still.as_ref().is_some_and(|(_, all)| *all) {
            self.granted.clear();
            self.child.iter_mut().for_each(Waiting::forget_rules);
        }
        self.unchanged = still.map(|(unchanged, _)| unchanged);
    }

    /// The file system as it is now, with the directories that have not changed already listed.
    pub(super) fn host(&self) -> Host {
        self.unchanged.as_ref().map(Unchanged::host).unwrap_or_default()
    }

    /// What this process stands on.
    pub(super) fn ground(&self) -> Ground {
        self.ground.map_or_else(Ground::find, Ground::again)
    }

    /// A ruleset with some of its rules, if there is one.
    pub(super) fn take_granted(&mut self, ruleset: &Ruleset) -> Option<Granted> {
        let is_it = |granted: &Granted| granted.is_for(ruleset.net, ruleset.tier, ruleset.platform);
        let place = self.granted.iter().position(is_it)?;
        Some(self.granted.swap_remove(place))
    }

    /// A child that waits for just this, if there is one. Any other is ended, and its ruleset kept.
    pub(super) fn take_child(&mut self, confinement: &Confinement, ruleset: &Ruleset) -> Option<Child> {
        match self.child.take()?.into_child(confinement, ruleset) {
            Ok(child) => Some(child),
            Err(granted) => {
                self.granted.extend(granted);
                None
            }
        }
    }

    /// Closes what is open.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
