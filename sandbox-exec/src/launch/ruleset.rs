//! What a child needs to confine itself, made before there is one.

use std::ffi::OsString;
use std::path::PathBuf;

use ipc::confinement::{Confinement, Tier};
use ipc::path::WirePath;
use ipc::rights::{Network, Rights};

use super::{Launch, at};
use crate::attempt;
use crate::compile::{self, Plan};
use crate::domain::Domain;
use crate::environment;
use crate::mediate::Mediation;
use crate::namespace::layout::{Layout, TMP};
use crate::platform::Platform;
use crate::seccomp::{Policy, Program};
use crate::stage::{Failure, Stage};
use crate::terminal;
use crate::tree::Host;

/// Rights, compiled for a tier.
#[derive(Debug)]
pub(crate) struct Ruleset {
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) platform: Platform,
    pub(crate) plan: Plan,
    /// The standing program, and for one that only reads the one that is stacked on it.
    pub(crate) programs: Vec<Program>,
    /// What the broker performs for the program, where it mediates.
    pub(crate) mediation: Option<Mediation>,
    pub(crate) missing: Vec<String>,
}

impl Ruleset {
    /// Compiles for the floor tier.
    pub(crate) fn floor(launch: &Launch) -> Result<Self, Failure> {
        Self::compile(&launch.confinement, Tier::FloorUnmediated, &Host::default())
    }

    /// Compiles for the full tier. What lies under a `/tmp` that the program does not see is not its concern, and nothing in its
    /// own is kept from it.
    pub(crate) fn full(launch: &Launch, layout: &Layout, host: &Host) -> Result<Self, Failure> {
        let mut seen = launch.confinement.in_tier(Tier::Full);
        seen.rights.hidden.retain(|hidden| layout.shows(hidden.as_path()));
        let mut ruleset = Self::compile(&seen, Tier::Full, host)?;
        if layout.tmp.is_some() {
            ruleset.plan.own(TMP.as_ref());
            let tmp = WirePath::from(TMP);
            let within = seen.rights.hidden.iter().filter(|hidden| hidden.is_within(&tmp));
            ruleset.missing.extend(within.map(|hidden| {
                format!("{hidden} is below /tmp: where it does not exist now, it can be read when it comes")
            }));
        }
        ruleset.mediation = ruleset.platform.seccomp.then(|| mediation(&seen.rights));
        ruleset.plan.hidden_witness = ruleset.plan.hidden_witness.filter(|path| attempt::is_readable(path));
        Ok(ruleset)
    }

    /// Opens the paths of the rules.
    pub(crate) fn domain(&self) -> Result<Domain, Failure> {
        Domain::build(&self.plan, self.platform).map_err(at(Stage::Rules))
    }

    fn compile(seen: &Confinement, tier: Tier, host: &Host) -> Result<Self, Failure> {
        let Confinement { rights, project, temp, environment, allow_degraded, hidden_files, .. } = seen;
        let temp = temp.as_ref().map(AsRef::as_ref);
        let environment = environment::build(std::env::vars_os(), environment, temp);
        let platform = Platform::probe().lowered(seen.landlock_abi);
        let absent = platform.absent_layers(tier);
        if !absent.is_empty() && !allow_degraded {
            let layers = absent.join("; ");
            return Err(Stage::Platform.failed(format!("{layers}; --allow-degraded starts all the same")));
        }
        let rights = &with_project(rights, project);
        let mut plan = compile::compile(rights, hidden_files, tier, host).map_err(at(Stage::Rules))?;
        if seen.terminal {
            plan.allow_terminal(terminal::paths(tier));
        }
        let policy = Policy::of(rights.net, platform, tier);
        let mut programs = vec![];
        if platform.seccomp {
            programs.push(Program::standing(policy));
            if seen.read_only {
                programs.push(Program::read_only(policy));
            }
        }
        let missing = platform.missing(rights, tier);
        Ok(Self { environment, platform, plan, programs, mediation: None, missing })
    }
}

/// A project in `/dev`, where `/` grants nothing, is a read root of its own: one in shared memory.
fn with_project(rights: &Rights, project: &WirePath) -> Rights {
    let mut rights = rights.clone();
    if project.is_within(&"/dev".into()) {
        rights.read.push(project.clone());
    }
    rights
}

/// Unix sockets may be reached wherever the program could have made them.
fn mediation(rights: &Rights) -> Mediation {
    let own = ["/dev/shm"].map(PathBuf::from);
    Mediation {
        net: rights.net,
        reach: rights.reach,
        writable: rights.write.iter().map(|root| root.clone().into()).chain(own).collect(),
        hidden: rights.hidden.iter().map(|hidden| hidden.clone().into()).collect(),
        host_network: rights.net == Network::On,
    }
}
