//! What a piece of text is, as far as it matters to how it looks.

use protocol::plan::StepStatus;

use crate::text::Wrap;

/// Kind of a piece of text, as far as its look depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    User,
    Assistant,
    /// Words of the model in a reply that was cut off.
    Void,
    Thinking,
    Tool,
    ToolFailed,
    /// Output of a tool, or content of a file.
    Output,
    /// Code in what the model says.
    Code,
    Diff,
    Denial,
    Fact,
    /// A command, as it will run.
    Command,
    Claim,
    Heading,
    Notice,
    Error,
    Turn,
    /// A heading in the text of a plan.
    PlanHeading,
    /// A paragraph in the text of a plan.
    PlanText,
    /// An item of a list in the text of a plan.
    PlanItem,
    /// Code in the text of a plan.
    PlanCode,
}

impl Look {
    /// The look of a step of a plan.
    pub(crate) const fn of_step(status: StepStatus) -> Self {
        match status {
            StepStatus::Pending => Self::Tool,
            StepStatus::InProgress => Self::Heading,
            StepStatus::Completed | StepStatus::Skipped => Self::Turn,
            StepStatus::Failed => Self::ToolFailed,
        }
    }

    /// Returns the characters before a row: one that begins a line, and one that continues it.
    pub(crate) const fn gutters(self) -> (&'static str, &'static str) {
        match self {
            Self::User => ("› ", "  "),
            Self::Turn | Self::Tool | Self::ToolFailed | Self::Denial | Self::Heading => ("", "  "),
            Self::Thinking => ("┊ ", "┊ "),
            // The first column is ours: nothing that a model or tool says can look like a line of Bailiwick's own.
            Self::Assistant | Self::Void | Self::Output => ("  ", "  "),
            Self::Code => ("  │ ", "  ↪ "),
            // What continues a line is told apart from a line of its own: it decides what runs.
            Self::Diff | Self::Command => ("│ ", "↪ "),
            // The claim stands above facts: no row of it can look like one of them.
            Self::Claim => ("“ ", "“ "),
            Self::Fact => ("  ", "            "),
            Self::Notice => ("· ", "  "),
            Self::Error => ("! ", "  "),
            // A rule stands before every row of a plan: none can look like a line of the request's own.
            Self::PlanHeading | Self::PlanText => ("│ ", "│ "),
            Self::PlanItem => ("│ ", "│   "),
            Self::PlanCode => ("│   ", "│ ↪ "),
        }
    }

    pub(crate) fn gutter_columns(self, first: bool) -> u16 {
        let (start, rest) = self.gutters();
        // Every character of a gutter is one column wide.
        u16::try_from(if first { start } else { rest }.chars().count()).unwrap_or_default()
    }

    /// Returns the places where its lines may break: in commands and file content no space may hang out of
    /// sight.
    pub(crate) const fn wrap(self) -> Wrap {
        match self {
            Self::Command | Self::Diff | Self::Output | Self::Code | Self::PlanCode => Wrap::Anywhere,
            _ => Wrap::Words,
        }
    }

    /// True if every line has the mark, instead of only the first.
    pub(crate) const fn repeats_mark(self) -> bool {
        !matches!(self, Self::User | Self::Assistant | Self::Void | Self::Notice | Self::Error | Self::Turn)
    }

    /// True of text that is read line by line, which long lines make hard.
    pub(crate) const fn is_prose(self) -> bool {
        matches!(
            self,
            Self::User
                | Self::Assistant
                | Self::Void
                | Self::Thinking
                | Self::PlanText
                | Self::PlanItem
                | Self::Claim
        )
    }

    /// True for text with code between backticks.
    pub(crate) const fn has_code_spans(self) -> bool {
        matches!(self, Self::PlanText | Self::PlanItem)
    }
}
