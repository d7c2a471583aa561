//! The access and settings of a session in this project. All explanations are based on them.

use gate::approval::ApprovalSettings;
use gate::{ApprovalMode, StandingRights};
use ipc::confinement::{Confinement, Tier};

use super::ExplainError;
use super::origins::Origins;
use crate::engine::place::{ConfinementOptions, Leftovers, Mode, ProjectSandbox, SetupError};
use crate::process::directories::Directories;
use crate::process::messages::tell;
use crate::settings::args::{AgentArgs, of_confinement};
use crate::settings::config::Sources;
use crate::settings::config::{ConfigOrigin, Effective, Layer, Value};

pub(crate) struct ExplainedPlace {
    pub setup: ProjectSandbox,
    wanted: ConfinementOptions,
    effective: Effective,
    approvals: ApprovalSettings,
}

pub(crate) struct ExplainPolicy<'a> {
    pub(super) setup: &'a ProjectSandbox,
    pub(super) standing: &'a StandingRights,
    pub(super) approvals: &'a ApprovalSettings,
    pub(super) origins: Origins<'a>,
}

impl ExplainedPlace {
    /// Combines flags and settings, and prepares the sandbox. Prints notices about the settings.
    pub(crate) fn prepare(args: &AgentArgs) -> Result<Self, ExplainError> {
        let directories = Directories::of_process().map_err(SetupError::from)?;
        let sources = Sources::read(&directories, &args.directory)?;
        let flags = flags(args);
        let effective = sources.effective(&flags);
        tell(&sources.notices(&effective, &flags));
        let leftovers = Leftovers::Leave;
        let wanted =
            ConfinementOptions { leftovers, ..ConfinementOptions::new(&effective, &args.confinement) };
        let setup =
            ProjectSandbox::new(directories, &args.directory, Mode::fixed(effective.mode()), &wanted)?;
        Ok(Self { setup, wanted, approvals: effective.approvals(true), effective })
    }

    /// Returns the access that a worker in this tier has without an approval. Includes the caches of this tier only.
    pub(crate) fn standing(&self, tier: Tier) -> StandingRights {
        let standing = self.setup.standing();
        let Confinement { rights, environment, .. } = self.setup.confinement(standing.rights().clone());
        let standing = standing.with_rights(rights).with_caches(environment.caches);
        standing.with_confirm_shell(self.approvals.confirm_shell).seen_in(tier)
    }

    pub(crate) fn policy<'a>(&'a self, standing: &'a StandingRights) -> ExplainPolicy<'a> {
        let Self { setup, wanted, effective, approvals } = self;
        ExplainPolicy { setup, standing, approvals, origins: Origins { setup, wanted, effective } }
    }
}

fn flags(args: &AgentArgs) -> Layer {
    let mode = args.mode.map(|mode| ApprovalMode::from(mode).as_str().to_owned());
    of_confinement(&args.confinement).with("mode", mode.map(Value::Text), ConfigOrigin::Flag("--mode"))
}
