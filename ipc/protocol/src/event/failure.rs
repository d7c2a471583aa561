//! Kinds of failures of a model's reply, and the parts of a conversation that a failure is about.

use serde::{Deserialize, Serialize};

use super::word::words;

/// A part of the conversation that a provider rejects: later requests leave it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum LeftOut {
    /// The model's thinking so far, with signatures and blocks of the provider's own tools.
    Thinking,
    /// The contents of the message with this index: its pictures or its thinking, or all of it.
    Message(u32),
}

words! {
    /// Reason that a reply is missing or incomplete: the API's word, or Bailiwick's.
    pub enum FailureKind {
        /// The server failed.
        Api = "api_error",
        /// The key is not accepted.
        Authentication = "authentication_error",
        /// The account has no money, or does not exist.
        Billing = "billing_error",
        /// The request was cancelled.
        Cancelled = "cancelled",
        /// Another request is in the way.
        Conflict = "conflict_error",
        /// No connection.
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
        /// The key may not do this.
        Permission = "permission_error",
        /// Too many requests.
        RateLimit = "rate_limit_error",
        /// The request is larger than the server takes.
        RequestTooLarge = "request_too_large",
        /// The server gave up.
        ServerTimeout = "timeout_error",
        /// The time ran out without a reply.
        Timeout = "timeout",
        /// The reply broke off.
        TruncatedStream = "truncated_stream",
    }
}
