//! Events about plans: files, approvals, and the progress of their steps.

use std::fmt;
use std::time::Duration;

use ipc::id::CallId;
use ipc::path::WirePath;
use ipc::rights::{Network, Reach, Word};
use serde::{Deserialize, Serialize};

use super::DecidedBy;
use crate::approval::NamedServer;
use crate::plan::{Plan, StepStatus};

/// A plan was written to its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanCreated {
    /// The call that wrote the plan, or whose plan a person edited.
    pub call: CallId,
    /// File of the plan in the state directory.
    pub path: WirePath,
    /// SHA-256 of the plan's bytes, in hexadecimal.
    pub digest: String,
    /// The author of the plan's bytes.
    pub author: PlanAuthor,
    /// The text of the plan file.
    pub markdown: String,
    /// The plan that was read from `markdown`.
    pub plan: Plan,
}

/// The author of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum PlanAuthor {
    /// The agent that plans.
    Planner,
    /// A person, who edited the plan.
    Person,
    /// An earlier session, or the author of the plan's file.
    Earlier,
}

/// A plan may be executed: its execution begins with exactly these bytes and this access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanApproved {
    /// The call that wrote the plan; absent if the plan was approved before the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// File of the plan.
    pub path: WirePath,
    /// SHA-256 of the plan's bytes, in hexadecimal.
    pub digest: String,
    /// Files and directories, with all below them, that the execution may change besides a private temp directory.
    pub write: Vec<WirePath>,
    /// Network access of the execution.
    pub net: Network,
    /// Local addresses that the execution may connect to if the network is on.
    pub reach: Reach,
    /// The MCP servers that the plan lists, with the access that the approval showed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<NamedServer>,
    /// Author of the approval.
    pub by: DecidedBy,
    /// The bytes of the plan, if no event `plan_created` of this session has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
}

/// The status of a step of a plan changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanStepStatus {
    /// The number of the step, from 1.
    pub step: u32,
    /// Title of the step.
    pub title: String,
    /// The status before the change.
    pub from: StepStatus,
    /// The status after the change.
    pub to: StepStatus,
    /// The agent's claim about the step, or the supervisor's reason for the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The outcomes of the step's acceptance commands, if they were run for this status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<AcceptanceOutcome>,
    /// Files of the project that changed since the previous step's report, sorted, at most a thousand. If the project
    /// could not be compared: files that file tools changed since the step began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WirePath>,
}

/// The progress of a step at the end of the agent that executes the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepAccount {
    /// The number of the step, from 1.
    pub step: u32,
    /// Title of the step.
    pub title: String,
    /// Status of the step when the execution ended.
    pub status: StepStatus,
    /// The last claim of the agent about the step, or the supervisor's last reason for the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The outcomes of the step's acceptance commands in their last run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<AcceptanceOutcome>,
    /// Files of the project that changed with the step, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WirePath>,
}

/// The outcome of an acceptance command, as the supervisor observed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AcceptanceOutcome {
    /// The call that ran the command.
    pub call: CallId,
    /// The acceptance command of the step, as the plan has it.
    pub command: String,
    /// True if the command ended with exit status 0.
    pub passed: bool,
    /// The end of the command, as a phrase: `exit status 1`.
    pub ended: String,
    /// Duration of the command in milliseconds.
    pub duration_ms: u64,
}

impl AcceptanceOutcome {
    /// Returns the outcome without duration, the same for equal outcomes: `passed: cargo test · exit status 0`.
    pub fn without_time(&self) -> String {
        let word = if self.passed { "passed" } else { "failed" };
        format!("{word}: {} · {}", self.command, self.ended)
    }
}

impl PlanAuthor {
    /// Returns the word that stands for the value in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Person => "person",
            Self::Earlier => "earlier",
        }
    }
}

/// Displays `plan "Fix the parser" (3 steps): /state/plans/2026-11-25-101112.md`.
impl fmt::Display for PlanCreated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan: Plan { title, steps, .. }, path, author, .. } = self;
        let edited = if *author == PlanAuthor::Person { ", edited" } else { "" };
        let unit = if steps.len() == 1 { "step" } else { "steps" };
        write!(f, "plan \"{title}\" ({} {unit}{edited}): {path}", steps.len())
    }
}

/// Displays `plan approved (write /p · net off)`.
impl fmt::Display for PlanApproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plan approved (")?;
        if self.write.is_empty() {
            f.write_str("read-only")?;
        } else {
            f.write_str("write")?;
            self.write.iter().try_for_each(|path| write!(f, " {}", Word(path)))?;
        }
        write!(f, " · net {}{}", self.net, self.reach)?;
        if !self.servers.is_empty() {
            f.write_str(" · mcp")?;
            self.servers.iter().try_for_each(|server| write!(f, " {}", server.name))?;
        }
        f.write_str(")")
    }
}

/// Displays `step 2 completed: Fix the parser`, and a line for each acceptance command.
impl fmt::Display for PlanStepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, title, to, note, acceptance, files, .. } = self;
        let word = match to {
            StepStatus::InProgress => "begins",
            other => other.as_str(),
        };
        write!(f, "step {step} {word}: {title}")?;
        note.as_ref().map_or(Ok(()), |note| write!(f, " ({note})"))?;
        acceptance.iter().try_for_each(|one| write!(f, "\n  {one}"))?;
        if files.is_empty() { Ok(()) } else { write!(f, "\n  changed: {}", Files(files)) }
    }
}

/// Displays the first names and the number of the others: `src/a.rs, src/b.rs and 3 more`.
struct Files<'a>(&'a [WirePath]);

impl fmt::Display for Files<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 8;
        for (at, path) in self.0.iter().take(MOST).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}", Word(path))?;
        }
        match self.0.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Displays `2 failed: Fix the parser (a test fails) · 1 of 2 commands passed`.
impl fmt::Display for StepAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, title, status, note, acceptance, files } = self;
        write!(f, "{step} {status}: {title}")?;
        note.as_ref().map_or(Ok(()), |note| write!(f, " ({note})"))?;
        if !acceptance.is_empty() {
            let passed = acceptance.iter().filter(|one| one.passed).count();
            let unit = if acceptance.len() == 1 { "command" } else { "commands" };
            write!(f, " · {passed} of {} {unit} passed", acceptance.len())?;
        }
        if files.is_empty() { Ok(()) } else { write!(f, " · changed {}", Files(files)) }
    }
}

/// Displays `passed: cargo test · exit status 0 · 2.5 s`.
impl fmt::Display for AcceptanceOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let took = Duration::from_millis(self.duration_ms).as_secs_f64();
        write!(f, "{} · {took:.1} s", self.without_time())
    }
}
