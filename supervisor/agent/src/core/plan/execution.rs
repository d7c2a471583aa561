//! The executor's side of a plan: the progress of each step, by reports and acceptance commands.

use std::collections::BTreeSet;
use std::time::Duration;

use gate::Change;
use gate::tools::{ExternalCall, PlannedServer, SHELL_EXEC, StepUpdate};
use ipc::id::{CallId, ToolUseId};
use ipc::path::WirePath;
use ipc::rights::RightsChange;
use ipc::tool::CommandExit;
use protocol::event::{AcceptanceOutcome, EventKind, PlanStepStatus, StepAccount, ToolCallStatus};
use protocol::plan::{OnFailure, Plan, PlanStep, StepStatus};
use serde_json::json;

use super::planning::Planning;
use crate::core::call::{CallResult, ToolUse};
use crate::core::change::ends_approvals;

/// Name of the tool of an executor's server that returns the files changed since the last report, as a JSON list.
pub const STEP_CHANGES: &str = "step_changes";

/// Argument of [`STEP_CHANGES`] at the beginning of a step, for a first comparison.
pub const STEP_BEGINS: &str = "begins";

/// Argument of [`STEP_CHANGES`] at the end of a step.
pub(in crate::core) const STEP_ENDS: &str = "ends";

/// Maximum bytes of a failed acceptance command's output in the result of a step.
const OUTPUT: usize = 4 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// SHA-256 of the plan's bytes, in hexadecimal.
    digest: String,
    steps: Vec<Step>,
    on_failure: OnFailure,
    retries: u32,
    timeout: Duration,
    /// True once a step has failed permanently.
    stopped: bool,
    /// Files that changed since the last report: at first those that file tools have changed, then those that a
    /// comparison of the project shows.
    files: BTreeSet<WirePath>,
    servers: Vec<PlannedServer>,
}

/// A step of a plan with its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub step: PlanStep,
    pub status: StepStatus,
    note: Option<String>,
    acceptance: Vec<AcceptanceOutcome>,
    failures: u32,
    files: BTreeSet<WirePath>,
}

impl Execution {
    /// Returns the execution of a plan. `planning` has the steps that are finished already.
    pub fn new(plan: &Plan, planning: &Planning) -> Self {
        let Planning { on_failure, retries, acceptance_timeout, finished, .. } = planning;
        let step = |(at, step): (usize, &PlanStep)| Step {
            step: step.clone(),
            status: if at < finished.len() { StepStatus::Completed } else { StepStatus::Pending },
            note: (at < finished.len()).then(|| "finished before".to_owned()),
            acceptance: Vec::new(),
            failures: 0,
            files: BTreeSet::new(),
        };
        Self {
            digest: String::new(),
            steps: plan.steps.iter().enumerate().map(step).collect(),
            on_failure: plan.on_failure.unwrap_or(*on_failure),
            retries: *retries,
            timeout: *acceptance_timeout,
            stopped: false,
            files: BTreeSet::new(),
            servers: Vec::new(),
        }
    }

    #[must_use]
    pub fn calling(self, servers: Vec<PlannedServer>) -> Self {
        Self { servers, ..self }
    }

    /// True if the plan lists the MCP tool of a call.
    pub fn lists(&self, call: &ExternalCall) -> bool {
        self.servers.iter().any(|server| server.covers(call))
    }

    /// Removes the MCP servers that may do more than the user now allows. Returns true if there were any.
    pub fn take_back(&mut self, change: &Change) -> bool {
        let keeps = |server: &PlannedServer| match (change, server.guest()) {
            (_, None) => true,
            (Change::Mode(_), _) => !ends_approvals(change),
            (Change::Rights(RightsChange::RemoveWrite { path }), Some(guest)) => {
                !guest.rights.write.iter().any(|root| root.is_within(path) || path.is_within(root))
            }
            (Change::Rights(change), Some(guest)) => {
                change.network_bound().is_none_or(|bound| bound.covers(&guest.rights.net))
            }
        };
        let before = self.servers.len();
        self.servers.retain(keeps);
        self.servers.len() < before
    }

    #[must_use]
    pub fn of(self, digest: String) -> Self {
        Self { digest, ..self }
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the number of steps before the first one that is neither completed nor skipped.
    pub fn finished(&self) -> u32 {
        let open = self.first_open().map_or(self.steps.len(), |(number, _)| number as usize - 1);
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// Returns the progress of each step.
    pub fn account(&self) -> Vec<StepAccount> {
        let each = (1..).zip(&self.steps).map(|(number, step)| StepAccount {
            step: number,
            title: step.step.title.clone(),
            status: step.status,
            note: step.note.clone(),
            acceptance: step.acceptance.clone(),
            files: step.files.iter().cloned().collect(),
        });
        each.collect()
    }

    /// Returns the first step that is neither completed nor skipped, with its number; `None` if there is none.
    fn first_open(&self) -> Option<(u32, &Step)> {
        (1..)
            .zip(&self.steps)
            .find(|(_, step)| !matches!(step.status, StepStatus::Completed | StepStatus::Skipped))
    }

    fn step(&mut self, number: u32) -> Option<&mut Step> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.steps.get_mut(at)
    }

    /// Returns the reason why a report on a step is invalid; `None` if it is valid.
    pub(in crate::core) fn misfit(&self, update: &StepUpdate) -> Option<String> {
        if self.stopped {
            return Some("execution has ended with the failed step: end your turn".to_owned());
        }
        let count = self.steps.len();
        let at = usize::try_from(update.step).unwrap_or(usize::MAX).wrapping_sub(1);
        let Some(step) = self.steps.get(at) else {
            return Some(format!("got step {}, expected 1 to {count}", update.step));
        };
        if step.status == StepStatus::Completed {
            return Some(format!("step {} is completed, and this cannot be changed", update.step));
        }
        let (open, _) = self.first_open()?;
        let word = "steps are executed in order";
        (update.step != open).then(|| format!("got step {}, expected {open}: {word}", update.step))
    }

    /// True if a step has failed permanently: only calls about plans and tasks are possible.
    pub(in crate::core) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// True if every step is completed or skipped.
    pub(in crate::core) fn is_finished(&self) -> bool {
        self.first_open().is_none()
    }

    /// Returns the reason why the plan is incomplete; `None` if it is complete.
    pub(in crate::core) fn unexecuted(&self) -> Option<String> {
        let (number, step) = self.first_open()?;
        Some(format!("step {number} of the plan is {}: {}", step.status, step.step.title))
    }

    /// Adds files that a call changed to the current step.
    pub(in crate::core) fn note_changed(&mut self, places: impl Iterator<Item = WirePath>) {
        self.files.extend(places);
    }

    /// Replaces the files of the current step by those that changed in the project since the last report.
    pub(in crate::core) fn see(&mut self, files: BTreeSet<WirePath>) {
        self.files = files;
    }

    pub(in crate::core) fn commands(&self, step: u32) -> Vec<String> {
        let at = usize::try_from(step).ok().and_then(|step| step.checked_sub(1));
        let step = at.and_then(|at| self.steps.get(at));
        step.map(|step| step.step.commands().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// Returns a call for each acceptance command of a step; `None` if the command cannot be written as a call.
    pub(in crate::core) fn acceptance_calls(&self, claim: &ToolUseId, step: u32) -> Option<Vec<ToolUse>> {
        let timeout_s = self.timeout.as_secs().max(1);
        let one = |(number, command): (u32, &String)| {
            let input = json!({ "command": command, "timeout_s": timeout_s }).to_string();
            ToolUse::ours(format!("{claim}-acceptance-{number}"), SHELL_EXEC, input)
        };
        (1..).zip(&self.commands(step)).map(one).collect()
    }

    /// Sets the status of a step. Returns the event for the log; `None` if the plan has no such step.
    pub(in crate::core) fn set(
        &mut self,
        update: &StepUpdate,
        outcomes: Vec<AcceptanceOutcome>,
    ) -> Option<EventKind> {
        let files: Vec<_> = std::mem::take(&mut self.files).into_iter().collect();
        let step = self.step(update.step)?;
        let from = std::mem::replace(&mut step.status, update.status);
        step.note.clone_from(&update.note);
        step.acceptance.clone_from(&outcomes);
        step.files.extend(files.iter().cloned());
        Some(EventKind::PlanStepStatus(PlanStepStatus {
            step: update.step,
            title: step.step.title.clone(),
            from,
            to: update.status,
            note: update.note.clone(),
            acceptance: outcomes,
            files,
        }))
    }

    /// Completes a step whose acceptance commands passed. Returns the text for the executor, and the event for the log
    /// (`None` if the plan has no such step).
    pub(in crate::core) fn complete(
        &mut self,
        update: &StepUpdate,
        outcomes: Vec<AcceptanceOutcome>,
    ) -> (String, Option<EventKind>) {
        let accepted = told(&outcomes, &[]);
        let event = self.set(update, outcomes);
        (format!("{accepted}{}", self.next()), event)
    }

    /// Fails a step: it is tried again if the plan allows that, else execution ends. Returns the text for the executor,
    /// and the event for the log (`None` if the plan has no such step).
    pub(in crate::core) fn fail(
        &mut self,
        update: &StepUpdate,
        outcomes: Vec<(AcceptanceOutcome, CallResult)>,
    ) -> (String, Option<EventKind>) {
        let (outcomes, outputs): (Vec<_>, Vec<_>) = outcomes.into_iter().unzip();
        let event = self.set(update, outcomes.clone());
        let (on_failure, retries) = (self.on_failure, self.retries);
        let failures = self.step(update.step).map_or(0, |step| {
            step.failures = step.failures.saturating_add(1);
            step.failures
        });
        let again = on_failure == OnFailure::Retry && failures <= retries;
        self.stopped = !again;
        let then = if again {
            format!(
                "step {} failed: mend it, and report it again ({} of {retries} tries left)",
                update.step,
                retries - failures + 1
            )
        } else {
            format!(
                "step {} failed, and execution ends here: say in a few sentences what went wrong, and end your turn",
                update.step
            )
        };
        (format!("{}{then}", told(&outcomes, &outputs)), event)
    }

    /// Returns the text for the executor about the next step.
    pub(in crate::core) fn next(&self) -> String {
        match self.first_open() {
            Some((number, step)) => {
                format!("next: step {number} ({}), which is {}", step.step.title, step.status)
            }
            None => "every step is done: end your turn with a short summary".to_owned(),
        }
    }
}

/// Returns the outcome of an acceptance command.
pub(in crate::core) fn outcome(
    call: CallId,
    command: &str,
    result: &CallResult,
    duration_ms: u64,
) -> AcceptanceOutcome {
    let ended = match result.exit {
        Some(CommandExit::Code(code)) => format!("exit status {code}"),
        Some(CommandExit::Signal(signal)) => format!("signal {signal}"),
        Some(CommandExit::TimedOut) => "over its time".to_owned(),
        None => format!("{}, without an exit status", word(result.status)),
    };
    let passed = result.exit == Some(CommandExit::Code(0));
    AcceptanceOutcome { call, command: command.to_owned(), passed, ended, duration_ms }
}

/// Returns the outcomes of acceptance commands as text for the executor, with the end of a failed command's output.
fn told(outcomes: &[AcceptanceOutcome], results: &[CallResult]) -> String {
    let mut told = String::new();
    for (at, outcome) in outcomes.iter().enumerate() {
        told.push_str("acceptance ");
        told.push_str(&outcome.without_time());
        told.push('\n');
        let output = results.get(at).filter(|_| !outcome.passed).map(|result| result.content.as_str());
        if let Some(output) = output.filter(|output| !output.is_empty()) {
            told.push_str(end_of(output));
            told.push('\n');
        }
    }
    told
}

const fn word(status: ToolCallStatus) -> &'static str {
    match status {
        ToolCallStatus::Completed => "completed",
        ToolCallStatus::Failed => "failed",
        ToolCallStatus::Denied => "denied",
        ToolCallStatus::Interrupted => "interrupted",
    }
}

fn end_of(text: &str) -> &str {
    let from = text.len().saturating_sub(OUTPUT);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(from..).unwrap_or(text)
}
