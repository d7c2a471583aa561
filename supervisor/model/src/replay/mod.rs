//! A scripted model: an HTTP server on loopback that sends prepared replies.
//!
//! `bailiwick demo`, the benchmarks and the tests use it through the real provider code.
//!
//! ```
//! use model::replay::{Block, ReplayServer, Script, Usage, sse};
//!
//! # fn main() -> std::io::Result<()> {
//! let call = [Block::text("Let me look."), Block::tool_use("toolu_1", "read_file", r#"{"path":"a.rs"}"#)];
//! let script = Script::new()
//!     .reply_error(529, "overloaded_error", "Overloaded")
//!     .reply(sse::message(&call, "tool_use", Usage::default()));
//! let server = ReplayServer::start(script)?;
//! assert!(server.base_url().starts_with("http://127.0.0.1:"));
//! # Ok(())
//! # }
//! ```

mod body;
pub mod chat;
pub mod responses;
mod script;
mod server;
pub mod sse;

pub use script::Script;
pub use server::{Check, ReplayServer};
pub use sse::{Block, Usage};

pub use crate::recording::{RecordedRequest, Reply};
