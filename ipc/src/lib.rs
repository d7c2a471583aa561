//! Messages between Bailiwick's processes: wire types, identifiers, access, framing and the codec.
//!
//! This crate links no network, terminal or Landlock code, so that all processes can share its types and nothing else.
//!
//! * [`rights`]: the access of an agent, as a lattice. [`denial`] and [`missing_right`]: denials with reason and
//!   remedy.
//! * [`tool`] and [`effect`]: the model's tool calls, and the exact change that a call would make.
//! * [`message`] and [`phase`]: messages to and from a worker, and their order.
//! * [`frame`], [`codec`] and [`pipe`]: the encoding of messages on a pipe.
//! * [`confinement`], [`refusal`] and [`probe`]: orders to `sandbox-exec`, reports of its broker, and test actions.
//! * [`gateway`], [`fetch`] and [`mcp`]: messages of the processes that connect to hosts by name, fetch a page, and
//!   speak with an MCP server.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod change;
pub mod codec;
pub mod confinement;
pub mod denial;
pub mod devices;
pub mod effect;
pub mod fetch;
pub mod form;
pub mod frame;
pub mod gateway;
pub mod id;
mod ignored;
pub mod image;
pub mod mcp;
pub mod message;
pub mod missing_right;
pub mod named;
pub mod page_url;
pub mod path;
pub mod phase;
pub mod pipe;
pub mod place;
pub mod probe;
pub mod recorded;
pub mod refusal;
pub mod rights;
pub mod text;
pub mod tool;
