//! Answers to questions that belong to a call under way: about a host, or a form of its server.

use ipc::id::CallId;

/// The step after such an answer.
pub(super) enum Answered {
    /// Nothing follows.
    Settled,
    /// The result of the call ends with these words.
    Remark(CallId, String),
    /// The turn ends.
    Aborted,
}
