//! Anthropic's Messages API: requests, streams, errors. `R1`, `S3`, `E5` and the like number the rules that requests,
//! streams and errors follow.
//!
//! * [`AnthropicConfig`] and [`Anthropic`]: the client.
//! * [`AnthropicDecoder`]: a stream's events, decoded without any I/O.

mod block;
mod client;
mod config;
mod message;
mod places;
mod request;
mod stream;
mod wire;

pub use client::Anthropic;
pub use config::{AnthropicConfig, ApiVersion, BASE_URL};
pub use stream::AnthropicDecoder;

pub(super) use client::api_key as key_header;

pub(super) fn usage_of(members: &serde_json::Map<String, serde_json::Value>) -> protocol::event::TokenUsage {
    stream::usage(members)
}
