//! Answers to questions that belong to an open call: about a host, or a form of a server.

use ipc::id::CallId;

/// The step after such an answer.
pub(super) enum Answered {
    Settled,
    /// The result of the call ends with this sentence.
    Remark(CallId, String),
    Aborted,
}
