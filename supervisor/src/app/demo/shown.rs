//! The demo's promises, checked by its session's log.

use std::fs;
use std::path::Path;

use ipc::approval::ReviewDecision;
use ipc::denial::Grade;
use ipc::event::{DecidedBy, EventKind, ToolCallStatus};

use crate::app::exit::Exit;
use crate::app::session::Refusal;

/// The promises that a session kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The end of the last command: the tests, with the fix in place.
    last_command: Option<ToolCallStatus>,
    /// True if a denial was proved.
    denial: bool,
    /// True if an edit was approved by an answer.
    approval: bool,
}

impl Shown {
    /// Reads the log of the only session that there is.
    pub(super) fn in_logs(state: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let mut logs = fs::read_dir(state.join("sessions"))?;
        let log = logs.next().ok_or("there is none")??.path();
        let loaded = crate::session::load(&log)?;
        if let Some(fault) = loaded.faults.first() {
            return Err(fault.to_string().into());
        }
        Ok(Self::of(loaded.tree.events().map(|event| &event.kind)))
    }

    fn of<'a>(events: impl Iterator<Item = &'a EventKind>) -> Self {
        let (mut shown, mut command) = (Self::default(), None);
        for kind in events {
            match kind {
                EventKind::ToolCallStarted { call, name, .. } if name == "shell_exec" => {
                    (command, shown.last_command) = (Some(*call), None);
                }
                EventKind::ToolCallFinished { call, status, .. } if command == Some(*call) => {
                    shown.last_command = Some(*status);
                }
                EventKind::Denied { denial, .. } => shown.denial |= denial.grade == Grade::Proved,
                EventKind::ApprovalAnswered(answered) => {
                    let approved = answered.decision == ReviewDecision::Approved;
                    shown.approval |= approved && answered.by == DecidedBy::User;
                }
                _ => {}
            }
        }
        shown
    }

    pub(super) fn verdict(&self) -> Result<Exit, Refusal> {
        let passed = self.last_command == Some(ToolCallStatus::Completed);
        let promises = [
            (passed, "the tests did not pass at the end"),
            (self.denial, "no write was provably denied"),
            (self.approval, "no edit was approved"),
        ];
        match promises.into_iter().find(|(kept, _)| !kept) {
            Some((_, broken)) => Err(Refusal::internal(format!("the demo failed: {broken}"))),
            None => Ok(Exit::Done),
        }
    }
}
