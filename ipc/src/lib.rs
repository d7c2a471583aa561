//! Messages between Bailiwick's processes, and nothing else.
//!
//! This crate is a leaf: wire types, identifiers, rights, framing and the codec. It links no network, terminal or Landlock
//! code, so that all processes can share its types and nothing else.
//!
//! * [`rights`]: what an agent may do, as a lattice.
//! * [`place`]: what an internet address is to this machine. [`probe`]: an act that is tried inside a confinement.
//! * [`tool`] and [`effect`]: calls that the model made, and the exact change that a call would make.
//! * [`image`]: pictures that a model is shown, which nothing here looks into.
//! * [`message`] and [`phase`]: the two directions of the worker boundary, and which message may come when.
//! * [`frame`], [`codec`] and [`pipe`]: how a message becomes bytes on a pipe.
//! * [`confinement`]: what `sandbox-exec` is told, and what its broker reports. [`refusal`]: a call that
//!   it refused.
//! * [`gateway`]: what is said around the process that connects to hosts by name.
//! * [`fetch`]: what is said around the process that fetches a page, by its [`page_url`].
//! * [`mcp`]: what is said around the process that speaks with an MCP server.
//! * [`devices`]: shared memory and terminals, which one agent of a container has at a time.
//! * [`recorded`]: values that older logs have as a sentence.
//! * [`denial`]: explained denials; [`missing_right`]: the missing right; [`named`]: places that a command's output names.

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
