//! A plan as data: its steps, the requested access, and the progress of each step.

use std::fmt;

use serde::{Deserialize, Serialize};

use ipc::path::WirePath;

/// A plan, as it was read from its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// Title of the plan, in one line.
    pub title: String,
    /// Background of the plan, as Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The requested access; by default only writes in the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<PlanRights>,
    /// Handling of the remaining steps after a failed one, if the plan states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// The steps in their order, numbered from 1.
    pub steps: Vec<PlanStep>,
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanStep {
    /// Title of the step, in one line.
    pub title: String,
    /// The work of the step, as Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The files that the step is about, as the plan writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Conditions that hold when the step is done, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<Acceptance>,
}

/// A condition that must hold when a step is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "text", rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum Acceptance {
    /// A command that must exit with 0. Bailiwick runs the command.
    Command(String),
    /// A statement that must be true. Only the agent judges it.
    Criterion(String),
}

/// The access that a plan requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanRights {
    /// Files and directories that must be writable, relative to the project or absolute; empty for the whole project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// True if the plan needs the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Names of the MCP servers of which the plan needs all tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Single tools of MCP servers that the plan needs, by their names for models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// A path that a plan asks for and that does not exist yet. A right needs an existing path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct PlaceToCreate {
    /// The path to be created, absolute.
    pub path: WirePath,
    /// The nearest existing directory above the path, which the execution may write instead.
    pub directory: WirePath,
}

/// Handling of the remaining steps of a plan after a failed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum OnFailure {
    /// Execution ends.
    #[default]
    Stop,
    /// Execution tries the step again, a few times at most.
    Retry,
    /// Execution ends, and the planner revises the remaining steps.
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
    /// Returns every acceptance command, with the number of its step, from 1.
    pub fn commands(&self) -> impl Iterator<Item = (usize, &str)> {
        self.steps.iter().enumerate().flat_map(|(at, step)| step.commands().map(move |text| (at + 1, text)))
    }
}

impl PlanStep {
    /// Returns the acceptance commands of the step, in order.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.acceptance.iter().filter_map(|one| match one {
            Acceptance::Command(text) => Some(text.as_str()),
            Acceptance::Criterion(_) => None,
        })
    }
}

impl OnFailure {
    /// Returns the word that stands for the value in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Retry => "retry",
            Self::Replan => "replan",
        }
    }
}

impl StepStatus {
    /// Returns the word that stands for the value in JSON.
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
