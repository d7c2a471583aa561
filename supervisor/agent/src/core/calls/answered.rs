//! Answers to questions that an open call waits for: about a host, or a form of an MCP server.

use ipc::id::CallId;

/// The step after an answer to a question of an open call.
pub(super) enum Answered {
    Settled,
    /// This sentence is added to the end of the call's result.
    Remark(CallId, String),
    Aborted,
}
