//! Approvals: requests to a front end, and its answers.
//!
//! A request shows everything that a person needs to decide. One typed decision answers it; any other answer counts as
//! [`ReviewDecision::Denied`].

mod agent;
mod answer;
mod changes;
mod command;
mod fetch;
mod field_words;
mod form;
mod host;
mod in_project;
mod kinds;
mod part;
mod plan;
mod request;
mod scope;
mod server;
mod turn;

pub use agent::{AgentAccess, AgentRightsApprovalParams};
pub use answer::{
    AgentRightsApprovalResponse, ApplyPatchApprovalResponse, ApprovalAnswer, DeniedCommandApprovalResponse,
    ExecCommandApprovalResponse, ExternalToolApprovalResponse, FetchApprovalResponse, HostApprovalResponse,
    NetworkApprovalResponse, PlanApprovalResponse, ReviewDecision, ServerFormResponse,
};
pub use changes::{FileChange, FileChanges};
pub use command::{
    AskedCommand, DeniedCommandApprovalParams, ExecCommandApprovalParams, NetworkApprovalParams,
};
pub use fetch::FetchApprovalParams;
pub use field_words::{choice_label, field_bounds, value_in_words};
pub use form::{
    FormValue, FormValues, ServerFormParams, check, check_all, default_of, defaults, picked, typed,
};
pub use host::HostApprovalParams;
pub use in_project::ProjectPrefixes;
pub use kinds::{
    AGENT_RIGHTS_APPROVAL_METHOD, APPLY_PATCH_APPROVAL_METHOD, AskKind, DENIED_COMMAND_APPROVAL_METHOD,
    EXEC_COMMAND_APPROVAL_METHOD, EXTERNAL_TOOL_APPROVAL_METHOD, FETCH_APPROVAL_METHOD, HOST_APPROVAL_METHOD,
    NETWORK_APPROVAL_METHOD, PLAN_APPROVAL_METHOD, SERVER_FORM_METHOD, SERVER_METHODS,
};
pub use part::{ChangePart, ChangedText, ChangedTexts, FilePart, HunkRange, MOST_TEXT, merged};
pub use plan::PlanApprovalParams;
pub use request::{ApplyPatchApprovalParams, ExternalToolApprovalParams, ServerRequest};
pub use scope::{ApprovalMode, SessionGrant, SessionScope};
pub use server::{NamedServer, ServerAccess};
pub use turn::TurnAccess;

#[cfg(test)]
mod tests;
