//! Sends requests to a model over HTTP, or replays recorded replies, and holds the API keys.
//!
//! This crate knows the agent's conversation, but neither workers nor rights. No other crate uses HTTP.

#![deny(unsafe_code)]

pub mod provider;
pub mod recording;
pub mod redaction;
pub mod relay;
pub mod replay;
pub mod secrets;
