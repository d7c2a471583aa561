//! The model: whoever answers an agent, over HTTP or from a recording, and the keys that it takes.
//!
//! It carries the agent's conversation and knows neither workers nor rights. Nothing else of the program speaks HTTP.

#![deny(unsafe_code)]

pub mod provider;
pub mod recording;
pub mod redaction;
pub mod relay;
pub mod replay;
pub mod secrets;
