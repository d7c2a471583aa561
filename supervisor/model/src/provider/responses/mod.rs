//! The Responses API, as its vendor, gateways and local servers speak it (WIRE §2).
//!
//! It is spoken without any state on the server's side: each request carries the whole conversation, and each item of a
//! reply goes back byte for byte, encrypted reasoning included.
//!
//! * [`Responses`]: the client.
//! * [`ResponsesDecoder`]: a stream's events, decoded without any I/O.

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
