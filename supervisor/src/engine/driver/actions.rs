//! Kinds of the user's actions, and the paths in them, which are resolved in the file system.

use std::path::Path;

use boundary::policy::{allowed_socket, warning_of_home, write_root};
use gate::modes;
use ipc::rights::RightsChange;
use protocol::approval::ApprovalMode;
use protocol::frontend::{AgentAction, UserAction, UserActionKind};
use protocol::known_sockets::gives;

pub(super) fn warning(action: &AgentAction) -> Option<String> {
    let AgentAction::SetRights { change } = action else { return None };
    match change {
        RightsChange::AddWrite { path } => warning_of_home(path),
        RightsChange::AddSocket { path } => Some(format!("{path} gives {}", gives(path))),
        RightsChange::Network { .. }
        | RightsChange::AddHosts { .. }
        | RightsChange::RemoveWrite { .. }
        | RightsChange::RemoveSocket { .. } => None,
    }
}

pub(super) const fn begins_turn(action: &AgentAction) -> bool {
    matches!(
        action,
        AgentAction::Prompt { .. }
            | AgentAction::PromptReading { .. }
            | AgentAction::ExecutePlan { .. }
            | AgentAction::Compact
            | AgentAction::RunCommand { .. }
    )
}

/// True if the action ends the session and therefore concerns every agent.
pub(super) const fn ends_session(action: &AgentAction) -> bool {
    matches!(
        action,
        AgentAction::Quit | AgentAction::InterruptSession | AgentAction::Terminate | AgentAction::HangUp
    )
}

pub(super) const fn is_last(action: &UserAction) -> bool {
    matches!(&action.kind, UserActionKind::Agent(action) if ends_session(action))
}

/// True if the action, in the mode `now`, withdraws access. Access is withdrawn from every agent of the session.
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
        // A grant or a plan belongs to the agent that the user named.
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

/// Resolves the path in an action, since the core does not access file systems. The error is a text for the user.
pub(super) fn resolved(project: &Path, action: AgentAction) -> Result<AgentAction, String> {
    let AgentAction::SetRights { change } = action else { return Ok(action) };
    let change = match change {
        RightsChange::AddWrite { path } => {
            let root = write_root(project, path.as_path()).map_err(|why| format!("{path} {why}"))?;
            RightsChange::AddWrite { path: root }
        }
        // A path that does not exist any more stays as it is.
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
