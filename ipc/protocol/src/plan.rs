//! A plan as data: its steps, the requested access, and the progress of each step.

use std::fmt;

use serde::{Deserialize, Serialize};

use ipc::path::WirePath;

/// A plan as it was read from its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// One line that names it.
    pub title: String,
    /// Background of the plan, as Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The requested access; by default only writes in the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<PlanRights>,
    /// Handling of the rest after a failed step, if the plan says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// The steps in their order; the first has the number 1.
    pub steps: Vec<PlanStep>,
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanStep {
    /// One line that names it.
    pub title: String,
    /// The work, as Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The files that it is about, as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Conditions that hold when the step is done, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<Acceptance>,
}

/// Something that has to hold when a step is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "text", rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum Acceptance {
    /// A command that has to exit with 0: it is run.
    Command(String),
    /// A sentence that has to be true: nobody but the agent judges it.
    Criterion(String),
}

/// The access that a plan requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanRights {
    /// Writable files and trees, relative to the project or absolute; an empty list is the whole project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// True if it needs the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Names of the MCP servers all of whose tools it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Single tools of MCP servers that it needs, by their names for models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// A place that a plan asks for and that is to be created: a right needs something that is there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct PlaceToCreate {
    /// The place, an absolute path.
    pub path: WirePath,
    /// The nearest directory above it, which execution may write in its stead.
    pub directory: WirePath,
}

/// Handling of the rest of a plan after a failed step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum OnFailure {
    /// Execution ends.
    #[default]
    Stop,
    /// The step is tried again, a few times at most.
    Retry,
    /// Execution ends, and the planner revises what is left of the plan.
    Replan,
}

/// Progress of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum StepStatus {
    /// The step was not started.
    #[default]
    Pending,
    /// The step is running.
    InProgress,
    /// The step succeeded.
    Completed,
    /// The step failed.
    Failed,
    /// The step was left out.
    Skipped,
}

impl Plan {
    /// Every acceptance command, with the number of its step.
    pub fn commands(&self) -> impl Iterator<Item = (usize, &str)> {
        self.steps.iter().enumerate().flat_map(|(at, step)| step.commands().map(move |text| (at + 1, text)))
    }
}

impl PlanStep {
    /// Returns the acceptance commands in order.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.acceptance.iter().filter_map(|one| match one {
            Acceptance::Command(text) => Some(text.as_str()),
            Acceptance::Criterion(_) => None,
        })
    }
}

impl OnFailure {
    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Retry => "retry",
            Self::Replan => "replan",
        }
    }
}

impl StepStatus {
    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for OnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
