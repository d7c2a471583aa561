//! Chat completions, as many servers speak them: requests, streams, errors (WIRE §2).
//!
//! * [`Config`] and [`OpenAiChat`]: the client.
//! * [`Decoder`]: a stream's chunks, decoded without any I/O.
//!
//! The history has the shape of the Messages API, whoever the provider is, so that log, front ends and core know one shape:
//! `text`, `thinking` and `tool_use` blocks. What a server must get back and that shape has no place for stands in members
//! and blocks of its own, and [`message`] writes it back into the request where the server had it:
//!
//! * `field` of a `thinking` block: the member that brought the reasoning, `reasoning_content` or `reasoning`;
//! * `arguments` of a `tool_use` block: the exact text of the arguments, where `input` is not that text;
//! * `extra_content` of a `tool_use` block: what the server attached to the call, such as a signature;
//! * a `reasoning_details` block: signed or encrypted reasoning.

mod back;
mod calls;
mod client;
mod config;
mod message;
mod open_text;
mod reasoning;
mod request;
mod stream;
mod usage;
mod wire;

pub use client::OpenAiChat;
pub use config::{BASE_URL, Config, ReplyLimit};
pub use stream::Decoder;

/// The tokens that a `usage` says.
pub(super) fn usage_of(usage: &serde_json::value::RawValue) -> Option<protocol::event::TokenUsage> {
    usage::parse(usage)
}

/// The form of chat completions that a server accepts, as far as its address shows.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub path: &'static str,
    pub reply_limit: ReplyLimit,
    pub takes_stream_options: bool,
}

/// The form that the server at this address takes.
pub(crate) fn form(base: &reqwest::Url) -> Form {
    let config::ChatServer { path, reply_limit, takes_stream_options, ids: _, wants_reasoning: _ } =
        config::ChatServer::at(base);
    Form { path, reply_limit, takes_stream_options }
}
