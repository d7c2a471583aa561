//! Kinds of failures of a model's reply, and the parts of a conversation that a request leaves out after a failure.

use serde::{Deserialize, Serialize};

use super::word::words;

/// A part of the conversation that a provider rejects, and that later requests leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum LeftOut {
    /// The model's thinking so far, with signatures and blocks of the provider's own tools.
    Thinking,
    /// The contents of the message with this index: its pictures, its thinking, or the whole message.
    Message(u32),
}

words! {
    /// Reason that a reply is missing or incomplete, as a word of the API or of Bailiwick.
    pub enum FailureKind {
        /// The server failed.
        Api = "api_error",
        /// The key is not accepted.
        Authentication = "authentication_error",
        /// The account has no money, or does not exist.
        Billing = "billing_error",
        /// The request was cancelled.
        Cancelled = "cancelled",
        /// The request conflicts with another one.
        Conflict = "conflict_error",
        /// The connection to the server failed.
        Connection = "connection",
        /// The conversation is longer than the model's window.
        ContextLengthExceeded = "context_length_exceeded",
        /// The server does not accept the request.
        InvalidRequest = "invalid_request_error",
        /// The response does not follow the API.
        InvalidResponse = "invalid_response",
        /// The model or the address does not exist.
        NotFound = "not_found_error",
        /// The server is overloaded: a later attempt may work.
        Overloaded = "overloaded_error",
        /// The key does not permit the request.
        Permission = "permission_error",
        /// The server received too many requests.
        RateLimit = "rate_limit_error",
        /// The request is larger than the server takes.
        RequestTooLarge = "request_too_large",
        /// The server did not complete the reply within its own time limit.
        ServerTimeout = "timeout_error",
        /// No reply came within Bailiwick's time limit.
        Timeout = "timeout",
        /// The reply ended before it was complete.
        TruncatedStream = "truncated_stream",
    }
}
