use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use ipc::path::WirePath;
use protocol::event::{AcceptanceOutcome, PlanStepStatus, StepAccount};
use protocol::plan::StepStatus;

use crate::moment::UiTime;

#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    title: String,
    commands: usize,
    pub status: StepStatus,
    began: Option<UiTime>,
    lasted: Option<Duration>,
    /// Number of acceptance commands that succeeded; `None` if none was run.
    passed: Option<usize>,
    pub note: Option<String>,
    files: Vec<WirePath>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepLine {
    pub status: StepStatus,
    pub text: String,
}

impl Step {
    pub(crate) fn new(title: &str, commands: usize) -> Self {
        Self { title: title.to_owned(), commands, ..Self::default() }
    }

    pub(crate) fn changed(&mut self, now: UiTime, change: &PlanStepStatus) {
        let began = self.began.take();
        if change.to == StepStatus::InProgress {
            self.began = Some(began.unwrap_or(now));
            self.passed = None;
        } else {
            self.lasted = began.map(|began| now.since(began)).or(self.lasted);
        }
        self.status = change.to;
        self.title.clone_from(&change.title);
        self.note.clone_from(&change.note);
        let new = change.files.iter().filter(|path| !self.files.contains(path)).cloned();
        let new: Vec<_> = new.collect();
        self.files.extend(new);
        self.ran(&change.acceptance);
    }

    pub(crate) fn accounted(&mut self, now: UiTime, account: &StepAccount) {
        self.lasted = self.began.take().map(|began| now.since(began)).or(self.lasted);
        self.status = account.status;
        self.title.clone_from(&account.title);
        self.note.clone_from(&account.note);
        self.files.clone_from(&account.files);
        self.ran(&account.acceptance);
    }

    fn ran(&mut self, outcomes: &[AcceptanceOutcome]) {
        if !outcomes.is_empty() {
            self.passed = Some(outcomes.iter().filter(|one| one.passed).count());
            self.commands = self.commands.max(outcomes.len());
        }
    }

    /// Returns the files that the step changed, such as `changed: src/a.rs, src/b.rs and 3 more`; `None` without any.
    pub(crate) fn changes(&self, project: &WirePath) -> Option<Vec<u8>> {
        const MOST: usize = 20;
        let name = |path: &WirePath| {
            let inside = path.as_path().strip_prefix(project.as_path()).unwrap_or(path.as_path());
            inside.as_os_str().as_bytes().to_owned()
        };
        let names: Vec<_> = self.files.iter().take(MOST).map(name).collect();
        let mut line = [b"changed: ".to_vec(), names.join(&b", "[..])].concat();
        if let more @ 1.. = self.files.len().saturating_sub(MOST) {
            line.extend(format!(" and {more} more").into_bytes());
        }
        (!names.is_empty()).then_some(line)
    }

    /// True if the step was neither completed nor skipped.
    pub(crate) const fn is_open(&self) -> bool {
        !matches!(self.status, StepStatus::Completed | StepStatus::Skipped)
    }

    pub(crate) const fn runs(&self) -> bool {
        self.began.is_some()
    }

    /// Returns a line such as `✓ 2 completed 12 s · 2/3 passed · Fix the parser`, with the title last.
    pub(crate) fn line(&self, number: u32, now: UiTime) -> StepLine {
        let (mark, word) = match self.status {
            StepStatus::Pending => ("·", "pending"),
            StepStatus::InProgress => ("▸", "running"),
            StepStatus::Completed => ("✓", "completed"),
            StepStatus::Failed => ("✗", "failed"),
            StepStatus::Skipped => ("-", "skipped"),
        };
        let time = self.began.map(|began| now.since(began)).or(self.lasted);
        let time = time.map(|time| format!(" {} s", time.as_secs())).unwrap_or_default();
        let passed = self.passed.map(|passed| format!(" · {passed}/{} passed", self.commands));
        let text = format!("{mark} {number} {word}{time}{} · {}", passed.unwrap_or_default(), self.title);
        StepLine { status: self.status, text }
    }
}
