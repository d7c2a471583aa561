//! Anthropic's Messages API: requests, streams, errors.
//!
//! [`Anthropic`] is the client, with the settings [`AnthropicConfig`]. [`AnthropicDecoder`] decodes the events of a
//! stream without I/O.
//!
//! The name of a test may begin with the number of the vendor's rule that it tests: `r` for requests, `s` for streams,
//! `e` for errors.

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
