//! Preparations for the confinement of a program, except its Landlock rules. They are made before the fork.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ipc::confinement::{Confinement, NoFullTier, Tier};
use ipc::path::WirePath;
use ipc::rights::Network;

use super::rules::Seen;
use crate::environment;
use crate::mediate::{Filter, Mediation, Sockets};
use crate::platform::{Platform, SCOPES};
use crate::private::MEMORY;
use crate::seccomp::{Policy, Program};
use crate::stage::{Failure, Stage};

#[derive(Debug)]
pub(crate) struct Ruleset {
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) platform: Platform,
    pub(crate) tier: Tier,
    pub(crate) net: Network,
    /// Seccomp programs: the standing one, and for a read-only program one that denies changes. May be empty.
    pub(crate) programs: Vec<Program>,
    pub(crate) mediation: Option<Mediation>,
    /// Reason why the full tier is not used; `None` if it is, or if the best tier was not requested.
    pub(crate) no_full_tier: Option<NoFullTier>,
    pub(crate) missing: Vec<String>,
}

impl Ruleset {
    /// Prepares a program's confinement. Fails if this platform lacks a layer, unless `allow_degraded` is set.
    pub(crate) fn new(seen: &Seen<'_>) -> Result<Self, Failure> {
        let Confinement { rights, project, temp, environment, allow_degraded, .. } = &*seen.confinement;
        let roots = rights.write.iter().chain([project]).filter(|root| Some(*root) != temp.as_ref());
        let is_of_temp = |place: &Path| {
            let place = WirePath::from(place);
            let is_within = |root: &WirePath| place.is_within(root);
            temp.as_ref().is_some_and(is_within) && !roots.clone().any(is_within)
        };
        let temp = temp.as_ref().map(AsRef::as_ref);
        let environment = environment::build(std::env::vars_os(), environment, temp, is_of_temp);
        let tier = seen.tier;
        let platform = seen.platform.lowered(seen.confinement.landlock_abi);
        let absent = platform.absent_layers(tier);
        if !absent.is_empty() && !allow_degraded {
            let layers = absent.join("; ");
            return Err(Stage::Platform.failed(format!("{layers}; --allow-degraded starts all the same")));
        }
        let policy = Policy::of(&rights.net, platform, tier).within(rights.reach);
        let mut programs = vec![];
        if platform.seccomp() {
            programs.push(Program::standing(policy));
            if seen.confinement.read_only {
                programs.push(Program::read_only(policy));
            }
        }
        let mut missing = platform.missing(rights, tier);
        missing.extend(seen.hidden_in_own_tmp().map(|hidden| {
            format!("{hidden} is below /tmp: where it does not exist now, it can be read when it comes")
        }));
        missing.extend(seen.private.denied.iter().cloned());
        let mediation = platform.mediates(tier).then(|| mediation(seen, platform));
        let (net, no_full_tier) = (rights.net.clone(), None);
        Ok(Self { environment, platform, tier, net, programs, mediation, no_full_tier, missing })
    }

    /// Returns the mediating filter merged with the first seccomp program, and the seccomp programs to attach after it.
    pub(super) fn joined(&self) -> (Option<Filter>, &[Program]) {
        match (&self.mediation, self.programs.split_first()) {
            (Some(mediation), Some((standing, others))) => {
                (Some(mediation.filter().behind(*standing)), others)
            }
            _ => (None, &self.programs),
        }
    }

    /// True if the kernel denies the program the host's abstract unix sockets.
    pub(crate) fn is_scoped(&self) -> bool {
        self.mediation.as_ref().is_some_and(|mediation| mediation.scoped)
    }

    pub(crate) fn seccomp_rules(&self) -> u32 {
        self.programs.iter().map(Program::rules).sum()
    }
}

/// Returns the settings of the mediator: unix sockets may be reached if they are granted or in writable directories.
fn mediation(seen: &Seen<'_>, platform: Platform) -> Mediation {
    let (rights, tier) = (&seen.confinement.rights, seen.tier);
    let own = [MEMORY].map(PathBuf::from).into_iter().filter(|_| tier == Tier::Full);
    let own = own.chain(seen.private.memory());
    // Shared memory is writable too, where it is private.
    let memory = WirePath::from(MEMORY);
    let writable = || rights.write.iter().chain([&memory]);
    let hidden = rights.hidden.iter().filter(|hidden| writable().any(|root| hidden.is_within(root)));
    let host_network = tier != Tier::Full || rights.net.is_the_machines();
    Mediation {
        net: rights.net.clone(),
        reach: rights.reach,
        writable: rights.write.iter().map(|root| root.clone().into()).chain(own).collect(),
        // The private `/tmp` is writable, and what it shows of the host's need not be.
        hidden: hidden.map(|hidden| hidden.clone().into()).chain(seen.read_only.iter().cloned()).collect(),
        reached: rights.sockets.iter().cloned().map(PathBuf::from).collect(),
        host_network,
        scoped: host_network && platform.abi >= SCOPES,
        objects: tier != Tier::Full,
        signals: platform.abi < SCOPES,
        metadata: tier != Tier::Full,
        sockets: Sockets::probe(),
        domain: None,
        hosts: None,
        led: None,
    }
}
