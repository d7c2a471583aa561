//! A plan together with the text of its file.

use std::fmt;

use protocol::plan::Plan;

use super::edit::edited;
use super::error::{PlanError, Unwritable};
use super::layout::Layout;
use super::parse::parse;
use super::print::{print, read_back};

/// A parsed plan file: the original text, and the plan in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    source: String,
    plan: Plan,
    layout: Layout,
}

impl Document {
    /// Reads a plan file.
    pub fn parse(source: &str) -> Result<Self, PlanError> {
        let (plan, layout) = parse(source)?;
        Ok(Self { source: source.to_owned(), plan, layout })
    }

    /// Returns the canonical file of a plan. Fails if the plan cannot be written as one.
    pub fn of(plan: &Plan) -> Result<Self, Unwritable> {
        read_back(&print(plan)?, plan)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The text of the file, byte for byte.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the file with another plan. Only fields that differ are rewritten. Unknown sections, comments, line ends
    /// and the spelling of other fields stay.
    pub fn with_plan(&self, plan: &Plan) -> Result<Self, Unwritable> {
        read_back(&edited(&self.source, &self.plan, &self.layout, plan), plan)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}
