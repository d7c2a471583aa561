use protocol::plan::StepStatus;

use crate::text::Wrap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    User,
    Assistant,
    /// Text of a reply that was cut off before its end.
    Void,
    Thinking,
    Tool,
    ToolFailed,
    /// Output of a tool, or content of a file.
    Output,
    /// Code in a message of the language model.
    Code,
    Diff,
    Denial,
    Fact,
    Command,
    Claim,
    Heading,
    Notice,
    Error,
    Turn,
    PlanHeading,
    PlanText,
    PlanItem,
    PlanCode,
}

impl Look {
    pub(crate) const fn of_step(status: StepStatus) -> Self {
        match status {
            StepStatus::Pending => Self::Tool,
            StepStatus::InProgress => Self::Heading,
            StepStatus::Completed | StepStatus::Skipped => Self::Turn,
            StepStatus::Failed => Self::ToolFailed,
        }
    }

    pub(crate) const fn gutters(self) -> (&'static str, &'static str) {
        match self {
            Self::User => ("› ", "  "),
            Self::Turn | Self::Tool | Self::ToolFailed | Self::Denial | Self::Heading => ("", "  "),
            Self::Thinking => ("┊ ", "┊ "),
            // Text of models and tools is indented, so that it cannot imitate a message of Bailiwick.
            Self::Assistant | Self::Void => ("  ", "  "),
            Self::Output => ("  ", "↪ "),
            Self::Code => ("  │ ", "  ↪ "),
            // A continuation row must not look like a new line of a command.
            Self::Diff | Self::Command => ("│ ", "↪ "),
            // No row of the agent's claim can look like a verified fact.
            Self::Claim => ("“ ", "“ "),
            Self::Fact => ("  ", "            "),
            Self::Notice => ("· ", "  "),
            Self::Error => ("! ", "  "),
            // A mark precedes each row of a plan, so that no row can look like part of the request.
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

    /// Returns the way to wrap lines. In commands and file contents, no trailing spaces are hidden.
    pub(crate) const fn wrap(self) -> Wrap {
        match self {
            Self::Command | Self::Diff | Self::Output | Self::Code | Self::PlanCode => Wrap::Code,
            Self::Turn | Self::Tool | Self::ToolFailed | Self::Notice => Wrap::Facts,
            _ => Wrap::Words,
        }
    }

    pub(crate) const fn repeats_mark(self) -> bool {
        !matches!(self, Self::User | Self::Assistant | Self::Void | Self::Notice | Self::Error | Self::Turn)
    }

    /// True for prose, whose line length is limited.
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

    pub(crate) const fn has_code_spans(self) -> bool {
        matches!(self, Self::PlanText | Self::PlanItem)
    }
}
