//! The planner's tool, which writes a plan, and the executor's, which reports on steps. Models read comments of fields.
#![expect(clippy::doc_markdown, reason = "the model reads plain text, where back-ticks are noise")]

use protocol::plan::StepStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::{BadArgument, filled, positive};
use super::external::OfferedServer;
use super::typed::{Arguments, Typed};
use super::{Invocation, Tool, ToolDefinition, ToolUseError};

pub const WRITE_PLAN: &str = "write_plan";

/// Maximum size of a note on a step, in bytes.
const LONGEST_NOTE: usize = 4 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanCall {
    /// The planner has written a plan, whose execution needs an approval.
    Write {
        markdown: String,
    },
    Update(StepUpdate),
}

/// The executor's report on a step, which may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepUpdate {
    pub step: u32,
    pub status: StepStatus,
    pub note: Option<String>,
}

pub(super) fn writing() -> Box<dyn Tool> {
    Box::new(Typed::<WritePlan>::new())
}

/// Returns the planner's tool with a description that names the MCP servers that a plan may list.
pub(super) fn writing_for(servers: &[OfferedServer]) -> Box<dyn Tool> {
    let typed = Typed::<WritePlan>::new();
    let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    let description = format!(
        "{} Execution may call a tool of an MCP server ({}) that can do more than the plan's other rights only if the plan lists \
         it below `## Rights`: `- server: NAME` for all tools of a server, `- tool: SERVER__TOOL` for one.",
        typed.definition().description,
        names.join(", ")
    );
    let definition = ToolDefinition { description: description.into(), ..typed.definition().clone() };
    Box::new(WritingFor { typed, definition })
}

struct WritingFor {
    typed: Typed<WritePlan>,
    definition: ToolDefinition,
}

impl Tool for WritingFor {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        self.typed.parse(input)
    }
}

pub(super) fn reporting() -> Box<dyn Tool> {
    Box::new(Typed::<UpdateStep>::new())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WritePlan {
    /// The whole plan, in the form that you were told.
    markdown: String,
}

impl Arguments for WritePlan {
    type Call = PlanCall;

    const NAME: &'static str = WRITE_PLAN;
    const DESCRIPTION: &'static str = "Writes the plan to its file and shows it to the user. It returns when the user has \
        decided: with comments, after which you revise the plan and call this again; or with the account of its execution, \
        which another agent carries out.";

    fn into_call(self) -> Result<PlanCall, BadArgument> {
        Ok(PlanCall::Write { markdown: filled("markdown", self.markdown)? })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateStep {
    /// The number of the step.
    #[schemars(range(min = 1))]
    step: u32,
    /// in_progress when you begin it; completed when it is done; failed or skipped with a note that says why.
    status: StepStatus,
    /// One or two sentences.
    note: Option<String>,
}

impl Arguments for UpdateStep {
    type Call = PlanCall;

    const NAME: &'static str = "update_step";
    const DESCRIPTION: &'static str = "Reports on a step of the plan. With status completed the step's acceptance commands \
        are run, and the result says what came of them: a step whose command fails is not completed.";

    fn into_call(self) -> Result<PlanCall, BadArgument> {
        let Self { step, status, note } = self;
        let step = positive("step", Some(step))?.unwrap_or_default();
        let note = note.filter(|note| !note.trim().is_empty());
        if let Some(length) = note.as_ref().map(String::len).filter(|length| *length > LONGEST_NOTE) {
            return Err(("note", format!("got {length} bytes, expected at most {LONGEST_NOTE}")));
        }
        if matches!(status, StepStatus::Failed | StepStatus::Skipped) && note.is_none() {
            return Err(("note", format!("got nothing, expected the reason, since the step is {status}")));
        }
        Ok(PlanCall::Update(StepUpdate { step, status, note }))
    }
}

impl From<PlanCall> for Invocation {
    fn from(call: PlanCall) -> Self {
        Self::Plan(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(json: &str) -> Result<Invocation, String> {
        reporting().parse(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_step_that_is_not_done_needs_a_reason() {
        let done = StepUpdate { step: 2, status: StepStatus::Completed, note: None };
        assert_eq!(
            update(r#"{"step":2,"status":"completed","note":" "}"#),
            Ok(Invocation::Plan(PlanCall::Update(done)))
        );
        for json in [
            r#"{"step":2,"status":"failed"}"#,
            r#"{"step":2,"status":"skipped","note":""}"#,
            r#"{"step":0,"status":"completed"}"#,
            r#"{"step":1,"status":"done"}"#,
            r#"{"step":1,"status":"completed","passed":true}"#,
        ] {
            let error = update(json).unwrap_err();
            assert!(error.contains("update_step"), "{error}");
        }
        assert!(writing().parse(r#"{"markdown":""}"#).is_err());
    }
}
