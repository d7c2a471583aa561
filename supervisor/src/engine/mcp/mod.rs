//! MCP servers: each is a guest with the access that its table in the person's settings states.
//!
//! The definitions of a server's tools come from its pin, which a person approved. So no server starts before the first
//! call of a session, and a tool whose definition has changed is refused. Servers of a file for one run have no pin:
//! the session permits only the definitions of their first start.

mod beside;
mod confine;
mod denied;
mod file;
mod find;
mod host;
mod inspect;
mod installed;
mod names;
mod offer;
mod own_code;
mod pin;
mod program;
mod progress;
mod questions;
mod resources;
mod result;
mod server;
mod store;

pub(crate) use beside::BesideServers;
pub(crate) use confine::stores;
pub(crate) use denied::denied;
pub(crate) use file::{FileServer, start};
pub(crate) use host::{McpHost, tell_prompts};
pub(crate) use inspect::{AccessIn, InspectError, Inspected, inspect};
pub(crate) use installed::{Installations, InstalledServer, NewInstallation, NotInstalled, fault};
pub(crate) use offer::{Offered, SessionServers};
pub(crate) use pin::{Pin, PinnedTool, Pins};
pub(crate) use program::{interpreters, toolchain};
