//! Sends requests to a language model over HTTP, or replays recorded replies. Holds the API keys.

#![deny(unsafe_code)]

pub mod provider;
pub mod recording;
pub mod redaction;
pub mod relay;
pub mod replay;
pub mod secrets;
