//! Model providers: each takes a request and returns a stream of typed events.
//!
//! [`anthropic`], [`chat`] and [`responses`] are the APIs, [`ReplayProvider`] sends recorded replies. [`catalogue`] has
//! known properties of models. [`RetryPolicy`] decides about further attempts.

pub mod anthropic;
mod arguments;
mod authorities;
mod blame;
mod broken_off;
pub mod catalogue;
pub mod chat;
mod connection;
mod connection_error;
#[cfg(test)]
mod cuts;
mod deadlines;
pub mod debug;
mod decode;
mod endpoint;
mod failure;
mod fault;
mod fit;
mod http;
mod key;
mod members;
mod messages;
pub mod meter;
mod open;
mod opening;
pub mod passage;
mod peer;
pub mod probe;
pub mod proxy;
mod replay;
mod reply;
pub mod responses;
mod retry_after;
mod second_look;
mod sse;
mod taken;
mod text;
mod tls_fault;
mod tool_name;
mod unknown;

pub use connection::is_of_this_machine;
pub use connection::{ConfigError, Connection, socket_of};
pub use decode::{Decode, Envelope};
pub use http::{HttpError, Timeouts};
pub use key::InvalidKey;
pub use open::{Opened, ProviderKind, open};
pub use replay::ReplayProvider;

pub use agent::conversation::{
    AssistantBlock, CacheLifetime, ContentBlock, Effort, GiveUp, Interrupted, Message, ModelRequest,
    ProviderError, RequestOptions, RetryPolicy, StopReason, StreamEvent, Temperature, Thinking,
    ThinkingDisplay, Tried, UserBlock, calls_of, echo_of_interrupted, plain_block,
};

pub use crate::secrets::Credential;

use std::pin::Pin;

use futures_util::Stream;

/// The events of a reply. Dropping the stream ends the request at once.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, ProviderError>> + Send>>;

/// A provider of models. One call of `stream` is one attempt. [`RetryPolicy`] decides on further attempts.
pub trait ModelProvider: Send + Sync {
    fn name(&self) -> &'static str;

    /// Sends a request. An error is the stream's last item.
    fn stream(&self, request: ModelRequest) -> EventStream;
}
