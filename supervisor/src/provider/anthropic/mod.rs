//! Anthropic's Messages API: requests, streams, errors (WIRE §1).
//!
//! * [`Config`] and [`Anthropic`]: the client.
//! * [`Decoder`]: a stream's events, decoded without any I/O.

mod block;
mod client;
mod config;
mod error;
mod message;
mod places;
mod request;
mod stream;
mod wire;

pub use client::Anthropic;
pub use config::{ApiVersion, BASE_URL, Config};
pub use stream::Decoder;
