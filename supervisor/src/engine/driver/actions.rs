//! What the user does, as inputs of the core.

use std::path::Path;

use agent::core::Input;
use boundary::policy::{warning_of_home, write_root};
use gate::modes;
use ipc::rights::RightsChange;
use protocol::approval::ApprovalMode;
use protocol::event::NoticeCode;
use protocol::frontend::{Op, UserActionKind};
use tokio::time::Instant;

use super::{AgentRun, SessionError, Shared};

impl AgentRun {
    /// Every action becomes one input of the core, but one that names no path.
    pub(super) fn act(&mut self, shared: &mut Shared, kind: UserActionKind) -> Result<(), SessionError> {
        if let UserActionKind::SetModel { model } = kind {
            return self.change_model(shared, &model);
        }
        if kind == UserActionKind::ListFiles {
            self.list_files();
            return Ok(());
        }
        if kind == UserActionKind::FindBranch {
            self.find_branch();
            return Ok(());
        }
        match resolved(self.worker.confinement().project.as_path(), kind) {
            Ok(op) => {
                if let Op::SetRights { change: RightsChange::AddWrite { path } } = &op
                    && let Some(warning) = warning_of_home(path)
                {
                    self.notice(shared, NoticeCode::Settings, &warning)?;
                }
                if matches!(
                    op,
                    Op::UserTurn { .. } | Op::ExecutePlan { .. } | Op::Compact | Op::OwnCommand { .. }
                ) && !self.agent.is_busy()
                {
                    self.turn_began = Some(Instant::now());
                    shared.begin_turn(&self.id);
                }
                self.feed(shared, Input::Op(op))
            }
            Err(why) => {
                self.notice(shared, NoticeCode::RightsRefused, &format!("the rights were not changed: {why}"))
            }
        }
    }
}

impl AgentRun {
    /// Has another model answer, if the session can have it.
    fn change_model(&mut self, shared: &mut Shared, name: &str) -> Result<(), SessionError> {
        let models = self.models.as_ref().ok_or_else(|| "this session has one model".to_owned());
        match models.and_then(|models| models.choose(name)) {
            Ok(choice) => self.feed(shared, Input::Model(Box::new(choice))),
            Err(why) => {
                self.notice(shared, NoticeCode::ModelRefused, &format!("cannot change the model: {why}"))
            }
        }
    }
}

/// What ends the session, and is for every agent therefore.
pub(super) const fn for_all(kind: &UserActionKind) -> Option<Op> {
    match kind {
        UserActionKind::Quit => Some(Op::Shutdown),
        UserActionKind::InterruptSession => Some(Op::InterruptSession),
        UserActionKind::Terminate => Some(Op::Terminate),
        UserActionKind::HangUp => Some(Op::HangUp),
        _ => None,
    }
}

/// True of what takes a right away, in this mode: it is taken from every agent of the session, whichever of them is named.
pub(super) const fn takes_away(kind: &UserActionKind, now: ApprovalMode) -> bool {
    match kind {
        UserActionKind::SetRights { change } => match change {
            RightsChange::Network { net, .. } => net.is_off(),
            RightsChange::RemoveWrite { .. } => true,
            RightsChange::AddWrite { .. } => false,
        },
        UserActionKind::SetMode { mode } => modes::takes_away(now, *mode),
        _ => false,
    }
}

/// The input that an action is, with the path that the user named resolved, once: the core knows nothing of file systems.
pub(super) fn resolved(project: &Path, kind: UserActionKind) -> Result<Op, String> {
    Ok(match kind {
        UserActionKind::Prompt { text, images } => Op::UserTurn { text, images },
        UserActionKind::SetRights { change: RightsChange::AddWrite { path } } => {
            let root = write_root(project, path.as_path()).map_err(|why| format!("{path} {why}"))?;
            Op::SetRights { change: RightsChange::AddWrite { path: root } }
        }
        // What was removed meanwhile is still named by where it was.
        UserActionKind::SetRights { change: RightsChange::RemoveWrite { path } } => {
            let place = project.join(path.as_path());
            let path = place.canonicalize().unwrap_or(place).into();
            Op::SetRights { change: RightsChange::RemoveWrite { path } }
        }
        UserActionKind::SetRights { change } => Op::SetRights { change },
        UserActionKind::SetModel { model } => return Err(format!("the model {model} is no right")),
        UserActionKind::ListFiles => return Err("a list of files is none".to_owned()),
        UserActionKind::FindBranch => return Err("a branch is none".to_owned()),
        UserActionKind::EditPlan { id, markdown } => Op::EditPlan { id, markdown },
        UserActionKind::RevisePlan { id, plan } => Op::RevisePlan { id, plan },
        UserActionKind::ExecutePlan { markdown } => Op::ExecutePlan { markdown },
        UserActionKind::AskTogether { id } => Op::AskTogether { id },
        UserActionKind::Rewind { .. } => return Err("a rewind is none".to_owned()),
        UserActionKind::Plan { .. } => return Err("a plan is none".to_owned()),
        // Answers have a way of their own.
        UserActionKind::Answer { id, .. } => {
            return Err(format!("an answer to request {id} changes no right"));
        }
        UserActionKind::SetMode { mode } => Op::SetMode { mode },
        UserActionKind::RevokeGrant { id } => Op::RevokeGrant { id },
        UserActionKind::Compact => Op::Compact,
        UserActionKind::Clear => Op::Clear,
        UserActionKind::RunCommand { command } => Op::OwnCommand { command },
        UserActionKind::RetryLog => return Err("another attempt at the log is none".to_owned()),
        UserActionKind::Interrupt => Op::Interrupt,
        UserActionKind::Quit => Op::Shutdown,
        UserActionKind::InterruptSession => Op::InterruptSession,
        UserActionKind::Terminate => Op::Terminate,
        UserActionKind::HangUp => Op::HangUp,
    })
}
