use gate::tools::LeftOut;
use gate::{Offer, StandingRights};
use ipc::denial::Denial;
use ipc::id::ToolUseId;
use ipc::image::Image;
use ipc::rights::RightsSummary;
use ipc::tool::CommandExit;
use protocol::event::{FileDiff, ObservedBy, ToolCallStatus};

use crate::conversation::UserBlock;

#[derive(Clone, Debug)]
pub(in crate::core) struct CallResult {
    pub(in crate::core) status: ToolCallStatus,
    pub(in crate::core) content: String,
    pub(in crate::core) is_error: bool,
    pub(in crate::core) images: Vec<Image>,
    /// The changes of files that the worker reported, or the reason why they are left out.
    pub(in crate::core) diffs: Result<Vec<FileDiff>, LeftOut>,
    /// Sentence about the denial that caused the result; `None` if no denial did.
    pub(in crate::core) denial: Option<String>,
    /// Explanation of the denials at the end of the content. Front ends leave it out, because they show the denials.
    pub(in crate::core) explanation: Option<String>,
    /// Advice for the model how to read the rest of a shortened result; `None` if the rest cannot be read.
    pub(in crate::core) rest: Option<String>,
    /// Exit of the command; `None` if it did not run to its end, or the call ran no command.
    pub(in crate::core) exit: Option<CommandExit>,
    /// Denials that are still to be logged; `None` if there are none.
    pub(in crate::core) denied: Option<Denials>,
    /// Offer to run the command again with more access; `None` once the person is asked or the offer is dropped.
    pub(in crate::core) offer: Option<Box<Offer>>,
}

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

    pub(in crate::core) fn not_done(status: ToolCallStatus, content: impl Into<String>) -> Self {
        Self { status, is_error: true, ..Self::answered(content.into()) }
    }

    pub(in crate::core) fn denied(content: impl Into<String>) -> Self {
        let content = content.into();
        Self { denial: Some(content.clone()), ..Self::not_done(ToolCallStatus::Denied, content) }
    }

    /// Returns the size of the explanation. `None` if there is none, or the content was shortened and lacks it.
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
