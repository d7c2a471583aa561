//! The chat completions API of many servers: requests, streams, errors.
//!
//! The history has the shape of the Messages API for every provider: `text`, `thinking` and `tool_use` blocks. Data
//! that a server needs back and that this shape does not have are in extra fields and blocks. [`message`] writes them
//! into requests where the server had them:
//!
//! * `field` of a `thinking` block: the field of the reasoning, `reasoning_content` or `reasoning`;
//! * `arguments` of a `tool_use` block: the exact text of the arguments, if `input` differs;
//! * `extra_content` of a `tool_use` block: data that the server attached to the call, such as a signature;
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

pub(super) fn usage_of(usage: &serde_json::value::RawValue) -> Option<protocol::event::TokenUsage> {
    usage::parse(usage)
}

/// The variant of chat completions that a server accepts, as far as its address shows.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub path: &'static str,
    pub reply_limit: ReplyLimit,
    pub takes_stream_options: bool,
}

pub(crate) fn form(base: &reqwest::Url) -> Form {
    let config::ChatServer { path, reply_limit, takes_stream_options, ids: _, wants_reasoning: _ } =
        config::ChatServer::at(base);
    Form { path, reply_limit, takes_stream_options }
}
