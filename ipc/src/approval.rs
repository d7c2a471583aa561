//! Approvals: what a front end is asked, and what it may answer.
//!
//! A request carries everything that a person needs to decide: the exact bytes or the exact argument vector, and the right that
//! is missing. It is answered once, by a typed decision; whatever else comes counts as [`ReviewDecision::Denied`].

mod answer;
mod changes;
mod request;
mod scope;

pub use answer::{
    ApplyPatchApprovalResponse, ApprovalAnswer, ExecCommandApprovalResponse, ExternalToolApprovalResponse,
    NetworkApprovalResponse, ReviewDecision,
};
pub use changes::{FileChange, FileChanges};
pub use request::{
    APPLY_PATCH_APPROVAL_METHOD, ApplyPatchApprovalParams, EXEC_COMMAND_APPROVAL_METHOD,
    EXTERNAL_TOOL_APPROVAL_METHOD, ExecCommandApprovalParams, ExternalToolApprovalParams,
    NETWORK_APPROVAL_METHOD, NetworkApprovalParams, SERVER_METHODS, ServerRequest, UnknownServerRequest,
};
pub use scope::{ApprovalMode, SessionGrant, SessionScope};

#[cfg(test)]
mod tests;
