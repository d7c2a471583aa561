//! A conversation with a model: requests, replies, and the failures of attempts.
//!
//! Every provider uses these types; none of them depends on a wire format.

mod calls;
mod interrupted;
mod options;
mod overflow;
mod plain;
mod retry;
mod types;

pub use calls::calls_of;
pub use interrupted::{Interrupted, echo_of_interrupted};
pub use options::{CacheLifetime, Effort, RequestOptions, Temperature, Thinking, ThinkingDisplay};
pub use plain::plain_block;
pub use retry::{GiveUp, RetryPolicy, Tried};
pub use types::{
    AssistantBlock, ContentBlock, Message, ModelRequest, ProviderError, StopReason, StreamEvent, UserBlock,
};
