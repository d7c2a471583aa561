//! The result of a call, for the model and for the run.

use gate::tools::LeftOut;
use gate::{Offer, StandingRights};
use ipc::denial::Denial;
use ipc::id::ToolUseId;
use ipc::image::Image;
use ipc::rights::RightsSummary;
use ipc::tool::CommandExit;
use protocol::event::{FileDiff, ObservedBy, ToolCallStatus};

use crate::conversation::UserBlock;

/// The result of a call, for the model and for the run.
#[derive(Clone, Debug)]
pub(in crate::core) struct CallResult {
    pub(in crate::core) status: ToolCallStatus,
    pub(in crate::core) content: String,
    pub(in crate::core) is_error: bool,
    pub(in crate::core) images: Vec<Image>,
    /// The changes of files that its worker told.
    pub(in crate::core) diffs: Result<Vec<FileDiff>, LeftOut>,
    /// The sentence of the denial behind it.
    pub(in crate::core) denial: Option<String>,
    /// The end of the content that says what the events of its denials say.
    pub(in crate::core) explanation: Option<String>,
    /// The way to what is left out of it, if it has to be cut.
    pub(in crate::core) rest: Option<String>,
    /// The end of its command, if it ran one to its end.
    pub(in crate::core) exit: Option<CommandExit>,
    /// The denials behind it, until they are logged.
    pub(in crate::core) denied: Option<Denials>,
    /// The offer to run its command again, until it is made or dropped.
    pub(in crate::core) offer: Option<Box<Offer>>,
}

/// The denials that a call ran into, until they are logged with its result.
#[derive(Clone, Debug)]
pub(in crate::core) struct Denials {
    pub(in crate::core) list: Vec<Denial>,
    pub(in crate::core) rights: RightsSummary,
    pub(in crate::core) observed_by: ObservedBy,
}

impl Denials {
    pub(in crate::core) fn seen(
        list: Vec<Denial>,
        standing: &StandingRights,
        observed_by: ObservedBy,
    ) -> Self {
        Self { list, rights: standing.summary(), observed_by }
    }
}

impl CallResult {
    /// Returns the result of a call that succeeded with this text.
    pub(in crate::core) fn answered(content: String) -> Self {
        Self {
            status: ToolCallStatus::Completed,
            content,
            is_error: false,
            images: Vec::new(),
            diffs: Ok(Vec::new()),
            denial: None,
            explanation: None,
            rest: None,
            exit: None,
            denied: None,
            offer: None,
        }
    }

    /// Returns the result of a call that failed or was ended, with the reason as its content.
    pub(in crate::core) fn not_done(status: ToolCallStatus, content: impl Into<String>) -> Self {
        Self { status, is_error: true, ..Self::answered(content.into()) }
    }

    /// Returns the result of a call that was denied.
    pub(in crate::core) fn denied(content: impl Into<String>) -> Self {
        let content = content.into();
        Self { denial: Some(content.clone()), ..Self::not_done(ToolCallStatus::Denied, content) }
    }

    /// The length of its explanation; none where the content was cut, or goes on after it.
    pub(in crate::core) fn explanation_bytes(&self) -> Option<u64> {
        let explanation = self.explanation.as_ref().filter(|end| self.content.ends_with(end.as_str()))?;
        u64::try_from(explanation.len()).ok()
    }

    pub(in crate::core) fn into_block(self, tool_use: Option<ToolUseId>) -> UserBlock {
        let Self { content, is_error, images, .. } = self;
        match tool_use {
            Some(tool_use) => UserBlock::ToolResult { tool_use, content, is_error, images },
            None => UserBlock::Text(content),
        }
    }
}
