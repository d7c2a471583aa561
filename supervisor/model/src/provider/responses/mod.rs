//! The Responses API of its vendor, of gateways and of local servers.
//!
//! The server keeps no state: each request contains the whole conversation, with each item of earlier replies byte for
//! byte, including encrypted reasoning.

mod client;
mod item;
mod message;
mod request;
mod stream;
mod usage;
mod wire;

pub use client::Responses;
pub use stream::ResponsesDecoder;

pub(super) fn usage_of(usage: &serde_json::Value) -> protocol::event::TokenUsage {
    usage::parse(Some(usage))
}
