//! What the user does, as inputs of the core.

use std::path::Path;

use agent::core::Input;
use boundary::policy::{allowed_socket, warning_of_home, write_root};
use gate::modes;
use ipc::rights::RightsChange;
use protocol::approval::ApprovalMode;
use protocol::event::NoticeCode;
use protocol::frontend::{AgentAction, Op, UserAction, UserActionKind};
use protocol::known_sockets::gives;
use tokio::time::Instant;

use super::{AgentRun, SessionError, Shared};

impl AgentRun {
    /// Gives the core an action of the user as its input, with its path resolved.
    pub(super) fn act(&mut self, shared: &mut Shared, action: AgentAction) -> Result<(), SessionError> {
        match resolved(self.worker.confinement().project.as_path(), action) {
            Ok(action) => {
                if let AgentAction::SetRights { change: RightsChange::AddWrite { path } } = &action
                    && let Some(warning) = warning_of_home(path)
                {
                    self.sink.notice(shared, NoticeCode::Settings, &warning)?;
                }
                if let AgentAction::SetRights { change: RightsChange::AddSocket { path } } = &action {
                    let message = format!("{path} gives {}", gives(path));
                    self.sink.notice(shared, NoticeCode::Settings, &message)?;
                }
                if begins_turn(&action) && !self.agent.is_busy() {
                    self.turn_began = Some(Instant::now());
                    shared.begin_turn(self.sink.agent());
                }
                self.feed(shared, Input::Op(Op::Act(action)))
            }
            Err(why) => self.sink.notice(
                shared,
                NoticeCode::RightsRefused,
                &format!("the access was not changed: {why}"),
            ),
        }
    }

    /// Has another model answer, if the session can have it.
    pub(super) fn change_model(&mut self, shared: &mut Shared, name: &str) -> Result<(), SessionError> {
        let models = self.models.as_ref().ok_or_else(|| "this session has one model".to_owned());
        match models.and_then(|models| models.choose(name)) {
            Ok(choice) => self.feed(shared, Input::Model(Box::new(choice))),
            Err(why) => {
                self.sink.notice(shared, NoticeCode::ModelRefused, &format!("cannot change the model: {why}"))
            }
        }
    }
}

const fn begins_turn(action: &AgentAction) -> bool {
    matches!(
        action,
        AgentAction::Prompt { .. }
            | AgentAction::PromptReading { .. }
            | AgentAction::ExecutePlan { .. }
            | AgentAction::Compact
            | AgentAction::RunCommand { .. }
    )
}

/// True of what ends the session, and is for every agent therefore.
pub(super) const fn ends_session(action: &AgentAction) -> bool {
    matches!(
        action,
        AgentAction::Quit | AgentAction::InterruptSession | AgentAction::Terminate | AgentAction::HangUp
    )
}

/// True of an action that ends the session.
pub(super) const fn is_last(action: &UserAction) -> bool {
    matches!(&action.kind, UserActionKind::Agent(action) if ends_session(action))
}

/// True of what takes a right away, in this mode: it is withdrawn from every agent of the session, whichever of them
/// is named.
pub(super) const fn takes_away(action: &AgentAction, now: ApprovalMode) -> bool {
    match action {
        AgentAction::SetRights { change } => match change {
            RightsChange::Network { net, .. } => net.is_off(),
            RightsChange::RemoveWrite { .. } | RightsChange::RemoveSocket { .. } => true,
            RightsChange::AddHosts { .. }
            | RightsChange::AddWrite { .. }
            | RightsChange::AddSocket { .. } => false,
        },
        AgentAction::SetMode { mode } => modes::takes_away(now, *mode),
        // A grant and a plan belong to the agent that the user named.
        AgentAction::Prompt { .. }
        | AgentAction::PromptReading { .. }
        | AgentAction::EditPlan { .. }
        | AgentAction::RevisePlan { .. }
        | AgentAction::ExecutePlan { .. }
        | AgentAction::AskTogether { .. }
        | AgentAction::RevokeGrant { .. }
        | AgentAction::Compact
        | AgentAction::Clear
        | AgentAction::RunCommand { .. }
        | AgentAction::Interrupt
        | AgentAction::Quit
        | AgentAction::InterruptSession
        | AgentAction::Terminate
        | AgentAction::HangUp => false,
    }
}

/// The action with the path that the user named resolved, once: the core knows nothing of file systems.
pub(super) fn resolved(project: &Path, action: AgentAction) -> Result<AgentAction, String> {
    let AgentAction::SetRights { change } = action else { return Ok(action) };
    let change = match change {
        RightsChange::AddWrite { path } => {
            let root = write_root(project, path.as_path()).map_err(|why| format!("{path} {why}"))?;
            RightsChange::AddWrite { path: root }
        }
        // What was removed meanwhile is still named by where it was.
        RightsChange::RemoveWrite { path } => {
            let place = project.join(path.as_path());
            RightsChange::RemoveWrite { path: place.canonicalize().unwrap_or(place).into() }
        }
        RightsChange::AddSocket { path } => {
            let found = allowed_socket(project, path.as_path()).map_err(|why| format!("{path} {why}"))?;
            RightsChange::AddSocket { path: found }
        }
        RightsChange::RemoveSocket { path } => {
            let place = project.join(path.as_path());
            RightsChange::RemoveSocket { path: place.canonicalize().unwrap_or(place).into() }
        }
        RightsChange::Network { .. } | RightsChange::AddHosts { .. } => change,
    };
    Ok(AgentAction::SetRights { change })
}
