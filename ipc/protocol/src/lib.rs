//! Messages between a front end and the supervisor, and the events of a session's log.
//!
//! * [`event`] and [`cost`]: the session's events, and what they cost. [`plan`]: a plan as data.
//! * [`approval`]: what a person is asked, and the answers that there are.
//! * [`error_code`]: the stable codes of the errors that people meet.
//! * [`network_words`]: the network as people write it.
//! * [`own_command`]: commands of the user's own.
//! * [`server_prompt`]: prompts of MCP servers. [`typed_prompt`]: these as commands that the user types.
//! * [`shell_word`]: quotes words for a shell.
//! * [`frontend`]: what a front end is shown, and what it asks for. [`rpc`]: the same as JSON-RPC, between processes.

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
