//! Checks in the session's log that the demo showed everything that it promises.

use std::fs;
use std::path::Path;

use ipc::denial::Grade;
use protocol::approval::ReviewDecision;
use protocol::event::{DecidedBy, EventKind, ToolCallStatus};

use crate::engine::opening::Refusal;
use crate::process::exit::Exit;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    last_command: Option<ToolCallStatus>,
    /// True if the log has a denial for which the kernel or the broker gave evidence.
    denial: bool,
    approval: bool,
}

impl Shown {
    /// Reads the log of the only session in the state directory.
    pub(super) fn in_logs(state: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let mut logs = fs::read_dir(state.join("sessions"))?;
        let log = logs.next().ok_or("you have none")??.path();
        let loaded = crate::journal::session::load(&log)?;
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
                    let approved = matches!(
                        answered.decision,
                        ReviewDecision::Approved | ReviewDecision::ApprovedInPart { .. }
                    );
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
            (self.denial, "nothing proves that a write was denied"),
            (self.approval, "no edit was approved"),
        ];
        match promises.into_iter().find(|(kept, _)| !kept) {
            Some((_, broken)) => Err(Refusal::internal(format!("the demo failed: {broken}"))),
            None => Ok(Exit::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use ipc::denial::{Denial, Layer, Object, Operation};
    use ipc::id::{CallId, ToolUseId};
    use ipc::rights::RightsSummary;
    use protocol::event::{ApprovalAnswered, ToolKind};
    use serde_json::value::RawValue;

    use super::*;

    fn started(call: u64, name: &str) -> EventKind {
        let input = RawValue::from_string("{}".to_owned()).unwrap();
        EventKind::ToolCallStarted {
            call: CallId(call),
            tool_use: tool_use(),
            name: name.to_owned(),
            kind: ToolKind::Execute,
            locations: Vec::new(),
            input,
        }
    }

    fn finished(call: u64, status: ToolCallStatus) -> EventKind {
        let content = String::new();
        EventKind::ToolCallFinished {
            call: CallId(call),
            tool_use: tool_use(),
            status,
            content,
            explanation_bytes: None,
            duration_ms: 1,
            diffs: Vec::new(),
            diffs_left_out: false,
            images: Vec::new(),
        }
    }

    fn tool_use() -> ToolUseId {
        "toolu_0".into()
    }

    fn denied(grade: Grade) -> EventKind {
        let denial = Denial {
            layer: Layer::Landlock,
            operation: Operation::Write,
            object: Object::Command("x".to_owned()),
            program: None,
            missing_right: ipc::missing_right::MissingRight::write(&"x".into()).into(),
            grant: None,
            grade,
            errno: None,
        };
        EventKind::Denied { call: Some(CallId(2)), denial, rights: RightsSummary::default().into() }
    }

    fn answered(decision: ReviewDecision) -> EventKind {
        let (id, cause) = (None, None);
        EventKind::ApprovalAnswered(ApprovalAnswered {
            id,
            call: CallId(2),
            decision,
            by: DecidedBy::User,
            cause,
            in_part: None,
        })
    }

    #[test]
    fn a_proved_denial_an_approval_and_passing_tests_decide() {
        use ToolCallStatus::{Completed, Failed};
        let run = |call, status| vec![started(call, "shell_exec"), finished(call, status)];
        let is_kept = |parts: &[Vec<EventKind>]| Shown::of(parts.iter().flatten()).verdict().is_ok();
        let (proved, likely) = (vec![denied(Grade::Proved)], vec![denied(Grade::Likely)]);
        let yes = vec![answered(ReviewDecision::Approved)];
        let no = vec![answered(ReviewDecision::DENIED)];
        let (failing, passing) = (run(1, Failed), run(3, Completed));
        let begun = vec![started(3, "shell_exec")];
        assert!(is_kept(&[failing.clone(), proved.clone(), yes.clone(), passing.clone()]));
        for broken in [
            vec![],
            vec![proved.clone(), yes.clone(), failing],
            vec![proved.clone(), yes.clone(), begun],
            vec![likely, yes.clone(), passing.clone()],
            vec![yes, passing.clone()],
            vec![proved.clone(), no, passing.clone()],
            vec![proved, passing],
        ] {
            assert!(!is_kept(&broken), "{broken:?}");
        }
    }
}
