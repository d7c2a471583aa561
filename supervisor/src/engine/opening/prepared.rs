//! The first step of opening a session: its options, checked, and the place where they hold.

use std::sync::Arc;

use agent::core::Planning;
use boundary::monitor::PrivateTemp;
use gate::StandingRights;
use gate::activity::Activity;
use gate::modes::{Position, Rank, permits};
use ipc::id::AgentId;
use ipc::path::WirePath;
use model::provider::socket_of;

use super::error::OpenError;
use super::kept::KeptApprovals;
use super::options::SessionOptions;
use super::plan::planner_standing;
use super::relay_socket;
use crate::engine::driver::{Boundary, SnapshotTaker, Turns};
use crate::engine::mcp::FileServer;
use crate::engine::place::{Mode, ProjectSandbox};
use crate::journal::changes::{PatchFile, PatchFileError};
use crate::process::directories::Directories;

/// Options that hold at a place. Nothing has started there.
pub(crate) struct PreparedSession {
    pub(super) options: SessionOptions,
    pub(super) setup: Arc<ProjectSandbox>,
    /// The rights of the first agent, within those that the session may have.
    pub(super) standing: StandingRights,
    /// The planning of a first agent that makes plans.
    pub(super) planning: Option<Planning>,
}

impl PreparedSession {
    /// Makes the place of a session, where no agent reaches the socket of a relay.
    pub(crate) fn new(mut options: SessionOptions, directories: Directories) -> Result<Self, OpenError> {
        options.model.check(&options.limits)?;
        let mode = mode(&options);
        let setup = ProjectSandbox::new(directories, &options.directory, mode, &options.wanted)?;
        options.approvals.kept_in = Some(KeptApprovals::of(&setup).file());
        if let Some(socket) = options.base_url.as_deref().and_then(socket_of) {
            let socket = relay_socket::check_now(&setup, socket)?;
            options.base_url = Some(format!("unix:{}", socket.display()));
        }
        let ceiling = setup.standing();
        let (standing, planning) = match options.activity {
            Activity::Plan => (planner_standing(&ceiling), Some(options.plan.planning(ceiling))),
            Activity::Execute => (ceiling, None),
        };
        Ok(Self { options, setup: Arc::new(setup), standing, planning })
    }

    pub(crate) fn setup(&self) -> &ProjectSandbox {
        &self.setup
    }

    /// Adds servers that started before the session, in addition to those of the settings.
    pub(crate) fn with_servers(mut self, servers: Vec<FileServer>) -> Self {
        self.options.file_servers = servers;
        self
    }

    /// Opens the file of the patch, before anything is done.
    pub(super) fn patch(&self) -> Result<Option<PatchFile>, PatchFileError> {
        let file = self.options.patch.as_deref().map(PatchFile::open).transpose()?;
        Ok(file.map(|file| file.of_project(self.setup.standing().project.as_path())))
    }
}

/// The mode of a session. It may change where the user has many turns, or is asked and may give more access by an answer.
const fn mode(options: &SessionOptions) -> Mode {
    let agent = Position { activity: options.activity, rank: Rank::Top };
    let approves_plan = match options.activity {
        Activity::Plan => permits(agent, options.mode).keeps_approvals(),
        Activity::Execute => false,
    };
    match options.turns {
        Turns::Many => Mode::changing(options.mode),
        Turns::One if approves_plan || permits(Position::FIRST, options.mode).asks() => {
            Mode::changing(options.mode)
        }
        Turns::One => Mode::fixed(options.mode),
    }
}

/// An observer of the project, with a private temp directory of its own.
pub fn observer(setup: &ProjectSandbox, boundary: &Arc<dyn Boundary>, temp: &PrivateTemp) -> SnapshotTaker {
    let temp = WirePath::from(temp.path());
    let confinement = setup.confinement_beside(setup.policy.observer(temp.clone()), temp);
    SnapshotTaker {
        boundary: Arc::clone(boundary),
        agent: AgentId::root(),
        confinement,
        store: setup.directories.state.clone(),
    }
}
