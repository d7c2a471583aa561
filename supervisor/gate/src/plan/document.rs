use std::fmt;

use protocol::plan::Plan;

use super::edit::edited;
use super::error::{PlanError, Unwritable};
use super::layout::Layout;
use super::parse::parse;
use super::print::{print, read_back};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    source: String,
    plan: Plan,
    layout: Layout,
}

impl Document {
    pub fn parse(source: &str) -> Result<Self, PlanError> {
        let (plan, layout) = parse(source)?;
        Ok(Self { source: source.to_owned(), plan, layout })
    }

    /// Returns a new file for a plan, in the canonical form. Fails if the plan cannot be written as a file.
    pub fn of(plan: &Plan) -> Result<Self, Unwritable> {
        read_back(&print(plan)?, plan)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the file after `plan` replaces its plan. Only fields that differ are rewritten; unknown sections,
    /// comments, line ends and the spelling of other fields stay.
    pub fn with_plan(&self, plan: &Plan) -> Result<Self, Unwritable> {
        read_back(&edited(&self.source, &self.plan, &self.layout, plan), plan)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}
