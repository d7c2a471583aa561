//! Messages between a front end and the supervisor, and the events of a session's log.
//!
//! * [`event`] and [`cost`]: the session's events and their cost. [`plan`]: a plan as data.
//! * [`approval`]: requests to a person, and their answers.
//! * [`error_code`]: the stable codes of errors. [`network_words`]: the network as people write it.
//! * [`own_command`], [`server_prompt`] and [`typed_prompt`]: commands of the user, and prompts of MCP servers.
//! * [`frontend`]: messages of front ends. [`rpc`]: the same as JSON-RPC, between processes.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod approval;
pub mod cost;
pub mod error_code;
pub mod event;
pub mod frontend;
pub mod known_sockets;
pub mod network_words;
pub mod own_command;
pub mod plan;
pub mod rpc;
pub mod server_prompt;
pub mod shell_word;
pub mod typed_prompt;
