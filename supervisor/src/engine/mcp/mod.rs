//! MCP servers: each is a guest with the access that the server's table in the user's settings states.
//!
//! The definitions of a server's tools come from the server's pin, which the user approved. So no server starts before
//! its first call in a session, and a tool whose definition has changed is refused. A server of a file for one run has
//! no pin: the session permits the definitions of the server's first start.

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
