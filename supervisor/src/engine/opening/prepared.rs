//! The first step of opening a session: checks the session's options, and prepares its sandbox.

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

/// Checked options and a prepared sandbox. No process has started yet.
pub(crate) struct PreparedSession {
    pub(super) options: SessionOptions,
    pub(super) setup: Arc<ProjectSandbox>,
    /// Access of the first agent, which may be less than the session's.
    pub(super) standing: StandingRights,
    /// Data for making plans; `None` if the first agent makes none.
    pub(super) planning: Option<Planning>,
}

impl PreparedSession {
    /// Checks options and prepares the sandbox. Fails if an agent could access the socket of a relay.
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

    /// Adds MCP servers of a file. They were started once before the session.
    pub(crate) fn with_servers(mut self, servers: Vec<FileServer>) -> Self {
        self.options.file_servers = servers;
        self
    }

    /// Opens the patch file, so that an error is reported before the work begins; `None` if no patch is wanted.
    pub(super) fn patch(&self) -> Result<Option<PatchFile>, PatchFileError> {
        let file = self.options.patch.as_deref().map(PatchFile::open).transpose()?;
        Ok(file.map(|file| file.of_project(self.setup.standing().project().as_path())))
    }
}

/// Returns the mode. It can change if the session has many turns or if the user may approve more access.
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

/// Returns the value that starts observers: read-only workers that take snapshots.
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
