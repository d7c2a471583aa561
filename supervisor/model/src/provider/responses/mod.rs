//! The Responses API of its vendor, of gateways and of local servers.
//!
//! No state is kept on the server: each request has the whole conversation, and each item of a reply is sent back byte
//! for byte, with encrypted reasoning.

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
